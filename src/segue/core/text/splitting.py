"""Splits a text into messages that a platform takes.

Law: nothing is cut that fits into a message by itself. So a text is cut between paragraphs; only a paragraph that is
too long for any message is cut between list items or lines, then sentences, words, and at last characters. A block of
code that has to be cut is closed and opened again. Only white space is lost, and every piece fits.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from segue.core.contracts.adapters import Longest, Measure
from segue.core.text.graphemes import graphemes
from segue.core.text.markdown import Block, blocks, spans
from segue.errors import Invalid

Stretch = tuple[int, int]
Level = Callable[[str, int, int], Iterable[Stretch]]
"""Cuts a stretch of a text into smaller ones."""

# A space that doesn't break holds its words together. Each pattern begins with what it looks for, so that a long run of
# spaces is read once.
_SPACE = r"[^\S\u00a0\u2007\u202f]"
_PARAGRAPH = re.compile(r"\n(?:[ \t\r]*+\n)++")
_ITEM = re.compile(r"\n(?=[ \t]*(?:[-*+•]|\d{1,9}[.)]|#{1,6})[ \t])")
_LINE = re.compile(r"\n")
_SENTENCE = re.compile(
    rf"(?:(?<=[.!?…])|(?<=[.!?…][\"'”’)\]*_])|(?<=[.!?…]\*\*)){_SPACE}+|(?<=[。！？])(?![。！？」』”’）\s])"  # noqa: RUF001
)
_WORD = re.compile(rf"{_SPACE}+")
_CODE_WORD = re.compile(r"(?<=\S)[ \t]+")

_SIZES: dict[Measure, Callable[[str], int]] = {
    Measure.CHARACTERS: lambda _: 1,
    Measure.UTF16: lambda c: 2 if c > "\uffff" else 1,
    Measure.BYTES: lambda c: 1 if c < "\x80" else 2 if c < "\u0800" else 3 if c <= "\uffff" else 4,
}
_LARGEST = {measure: size("\U0010ffff") for measure, size in _SIZES.items()}


def split(text: str, longest: Longest) -> list[str]:
    """A text as messages, in order; none if nothing of it can be seen."""
    if longest.count < _LARGEST[longest.measure]:
        problem = f"{longest.count} {longest.measure} can't hold every character"
        raise Invalid("longest", problem, f"Give at least {_LARGEST[longest.measure]}.")
    if not text.strip():
        return []
    if longest.measure is Measure.CHARACTERS and len(text) <= longest.count:
        return [text]
    return _Pieces(text, longest).all()


class _Pieces:
    """A text on its way into pieces, each of which is a stretch of it."""

    def __init__(self, text: str, longest: Longest) -> None:
        self._text = text
        self._limit = longest.count
        self._size = _SIZES[longest.measure]
        self._upto = list(accumulate(map(self._size, text), initial=0))
        self._measured: dict[str, int] = {}
        self._blocks: list[Block] = []
        self._pieces: list[Stretch] = []

    def all(self) -> list[str]:
        text = self._text
        if self._upto[-1] <= self._limit:
            return [text]
        self._blocks = [block for block in blocks(text) if self._worth_keeping(block)]
        at = 0
        for block in self._blocks:
            self._place_each(_paragraphs(text, at, block.start), _PROSE)
            self._place(block.start, block.end, (_code_of(block), *_CODE))
            at = block.end
        self._place_each(_paragraphs(text, at, len(text)), _PROSE)
        return [text[start:end].join(self._around(start, end)) for start, end in self._pieces]

    def _place_each(self, stretches: Iterable[Stretch], smaller: tuple[Level, ...]) -> None:
        for start, end in stretches:
            self._place(start, end, smaller)

    def _place(self, start: int, end: int, smaller: tuple[Level, ...]) -> None:
        """Put a stretch into the last piece, else into a new one, else cut it."""
        if not self._text[start:end].strip():
            return
        begin = self._pieces[-1][0] if self._pieces else start
        if self._pieces and self._fits(begin, end):
            self._pieces[-1] = (begin, end)
        elif self._fits(start, end):
            self._pieces.append((start, end))
        else:
            self._place_each(smaller[0](self._text, start, end), smaller[1:])

    def _fits(self, start: int, end: int) -> bool:
        around = sum(map(self._measure, self._around(start, end)))
        return self._upto[end] - self._upto[start] + around <= self._limit

    def _around(self, start: int, end: int) -> tuple[str, str]:
        """What opens and closes the blocks in which a piece begins and ends."""
        first, last = self._block_at(start), self._block_at(end)
        return (first.opening if first else "", last.closing if last else "")

    def _block_at(self, at: int) -> Block | None:
        index = bisect_left(self._blocks, at, key=lambda block: block.start) - 1
        return self._blocks[index] if index >= 0 and at < self._blocks[index].end else None

    def _worth_keeping(self, block: Block) -> bool:
        """Whether a block's fences leave room for code, and there is some to be cut; else they are only text."""
        if self._measure(block.opening) + self._measure(block.closing) > self._limit // 2:
            return False
        whole = self._upto[block.end] - self._upto[block.start] <= self._limit
        return whole or bool(self._text[block.body : block.tail].strip())

    def _measure(self, fence: str) -> int:
        if fence not in self._measured:
            self._measured[fence] = sum(map(self._size, fence))
        return self._measured[fence]


def _between(text: str, start: int, end: int, seams: Iterable[Stretch]) -> Iterator[Stretch]:
    """The stretches between seams, without the white space at their ends; indentation is kept."""
    for begin, stop in seams:
        yield _trimmed(text, start, begin)
        start = stop
    yield _trimmed(text, start, end)


def _trimmed(text: str, start: int, end: int) -> Stretch:
    while start < end and text[start] in "\r\n":
        start += 1
    while start < end and text[end - 1] in " \t\r\n":
        end -= 1
    return start, end


def _paragraphs(text: str, start: int, end: int) -> Iterator[Stretch]:
    seams = (found.span() for found in _PARAGRAPH.finditer(text, start, end))
    return _between(text, start, end, (seam for seam in seams if not _under_heading(text, seam[0])))


def _under_heading(text: str, at: int) -> bool:
    """Whether the line that ends here is a heading, which goes with what follows it."""
    return text.startswith("#", text.rfind("\n", 0, at) + 1)


def _at(pattern: re.Pattern[str]) -> Level:
    """A level that cuts wherever a pattern is."""
    return lambda text, start, end: _between(text, start, end, (m.span() for m in pattern.finditer(text, start, end)))


def _whole(pattern: re.Pattern[str]) -> Level:
    """A level that cuts where a pattern is, but no link, inline code or emphasis."""

    def cut(text: str, start: int, end: int) -> Iterator[Stretch]:
        return _between(text, start, end, _outside(pattern, text, start, end))

    return cut


def _outside(pattern: re.Pattern[str], text: str, start: int, end: int) -> Iterator[Stretch]:
    upcoming = iter([*spans(text, start, end), (end, end)])
    first, last = next(upcoming)
    for found in pattern.finditer(text, start, end):
        while last < found.end():
            first, last = next(upcoming)
        if found.start() <= first or last <= found.start():
            yield found.span()


def _points(_: str, start: int, end: int) -> Iterator[Stretch]:
    """Single code points, for a grapheme that is larger than a message."""
    return ((at, at + 1) for at in range(start, end))


def _exactly(pattern: re.Pattern[str]) -> Level:
    """A level that cuts wherever a pattern is and keeps all else: the white space of code is text."""

    def cut(text: str, start: int, end: int) -> Iterator[Stretch]:
        for found in pattern.finditer(text, start, end):
            yield start, found.start()
            start = found.end()
        yield start, end

    return cut


def _code_of(block: Block) -> Level:
    """A level that leaves the fences off: a piece that begins or ends inside the block gets its own."""
    return lambda _text, _start, _end: [(block.body, block.tail)]


_PROSE: tuple[Level, ...] = (
    _at(_ITEM),
    _whole(_LINE),
    _whole(_SENTENCE),
    _whole(_WORD),
    _at(_WORD),
    graphemes,
    _points,
)
_CODE: tuple[Level, ...] = (_exactly(_PARAGRAPH), _exactly(_LINE), _exactly(_CODE_WORD), graphemes, _points)
