"""Graphemes: what a reader takes for one character, however many code points it is made of.

After UAX #29, from the categories that Python knows: where those are too coarse, more is kept together rather than
less, because a cut too few is only a longer piece.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

_MARKS = frozenset({"Mn", "Me", "Mc"})
_JOINER = "\u200d"
_EXTENDS = frozenset("\u200c\u200d\u0e33\u0eb3\uff9e\uff9f")
_PREPENDS = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
_VIRAMA = 9
"""The combining class of signs that bind the next consonant."""


def graphemes(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where each grapheme of a stretch begins and ends."""
    begin, flags = start, 0
    for at in range(start + 1, end):
        before, here = text[at - 1], text[at]
        # Flags are pairs of letters: a third letter begins the next flag.
        flags = flags + 1 if _is_flag(before) else 0
        if not (flags % 2 and _is_flag(here)) and not _joined(before, here):
            yield begin, at
            begin, flags = at, 0
    if begin < end:
        yield begin, end


def _joined(before: str, here: str) -> bool:
    if before == "\r" and here == "\n":
        return True
    if here < "\u0300" and before < "\u0300":
        return False
    if before.isspace() or unicodedata.category(before) == "Cc":
        return False
    return (
        unicodedata.category(here) in _MARKS
        or here in _EXTENDS
        or "\U0001f3fb" <= here <= "\U0001f3ff"
        or "\U000e0020" <= here <= "\U000e007f"
        or (before == _JOINER and not here.isspace())
        or before in _PREPENDS
        or (unicodedata.combining(before) == _VIRAMA and unicodedata.category(here) == "Lo")
        or _jamo(here) in _FOLLOWS.get(_jamo(before), "")
    )


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


_FOLLOWS = {"L": "LVSB", "V": "VT", "S": "VT", "T": "T", "B": "T"}
"""What goes on a Korean syllable: leading consonants, vowels, trailing ones, syllables (S) without and (B) with one."""


def _jamo(character: str) -> str:
    if "\u1100" <= character <= "\u115f" or "\ua960" <= character <= "\ua97c":
        return "L"
    if "\u1160" <= character <= "\u11a7" or "\ud7b0" <= character <= "\ud7c6":
        return "V"
    if "\u11a8" <= character <= "\u11ff" or "\ud7cb" <= character <= "\ud7fb":
        return "T"
    if "\uac00" <= character <= "\ud7a3":
        return "B" if (ord(character) - 0xAC00) % 28 else "S"
    return "-"
