"""Graphemes: what a reader takes for one character, however many code points it is made of."""

from collections.abc import Iterator

from apsw.unicode import grapheme_iter_with_offsets


def graphemes(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where each grapheme of a stretch begins and ends, by UAX #29."""
    return ((start + begin, start + stop) for begin, stop, _ in grapheme_iter_with_offsets(text[start:end]))
