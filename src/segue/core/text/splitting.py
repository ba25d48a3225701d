"""Splits a text into messages that a platform takes.

Law: nothing is cut that fits into a message by itself. So a text is cut between paragraphs; only a paragraph that is
too long for any message is cut between list items or lines, then sentences, words, and at last characters. A block of
code that has to be cut is closed and opened again. Only white space is lost, and every piece fits.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

from apsw.unicode import grapheme_iter_with_offsets

from segue.core.text.markdown import Block, blocks, spans

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

Fits = Callable[[str], bool]
"""Whether a platform takes a text as one message."""


def split(text: str, fits: Fits) -> Iterator[str]:
    """A text as messages, in order and made one by one; none if nothing of it can be seen."""
    if not text.strip():
        return
    if fits(text):
        yield text
        return
    yield from _Pieces(text, fits).all()


class _Pieces:
    """A text on its way into pieces, each of which is a stretch of it."""

    def __init__(self, text: str, fits: Fits) -> None:
        self._text = text
        self._fits = fits
        self._blocks: list[Block] = []
        self._growing: Stretch | None = None
        """The last piece, which may take more."""

    def all(self) -> Iterator[str]:
        text = self._text
        self._blocks = [block for block in blocks(text) if self._worth_keeping(block)]
        at = 0
        for block in self._blocks:
            yield from self._place(_paragraphs(text, at, block.start), _PROSE)
            yield from self._place([(block.start, block.end)], (_code_of(block), *_CODE))
            at = block.end
        yield from self._place(_paragraphs(text, at, len(text)), _PROSE)
        yield from self._grown()

    def _place(self, stretches: Iterable[Stretch], smaller: tuple[Level, ...]) -> Iterator[str]:
        """Put stretches into the growing piece, else into new ones; what no piece holds is cut."""
        left = [stretch for stretch in stretches if self._text[slice(*stretch)].strip()]
        while left:
            begin = self._growing[0] if self._growing else left[0][0]
            if count := self._taken(begin, left):
                self._growing = begin, left[count - 1][1]
                del left[:count]
            elif self._growing and (not smaller or self._fits(self._piece(left[0]))):
                yield from self._grown()
            elif smaller:
                yield from self._place(smaller[0](self._text, *left.pop(0)), smaller[1:])
            else:
                # The platform takes not even this character: it will say why.
                self._growing = left.pop(0)

    def _grown(self) -> Iterator[str]:
        if self._growing:
            yield self._piece(self._growing)
        self._growing = None

    def _taken(self, begin: int, stretches: list[Stretch]) -> int:
        """The number of these that a piece takes from there: steps that double, then halve, ask few times."""
        taken, step = 0, 1
        while self._takes(begin, stretches, taken + step):
            taken, step = taken + step, 2 * step
        while step := step // 2:
            if self._takes(begin, stretches, taken + step):
                taken += step
        return taken

    def _takes(self, begin: int, stretches: list[Stretch], count: int) -> bool:
        return count <= len(stretches) and self._fits(self._piece((begin, stretches[count - 1][1])))

    def _piece(self, stretch: Stretch) -> str:
        """A stretch with what opens and closes the blocks in which it begins and ends."""
        first, last = map(self._block_at, stretch)
        return f"{first.opening if first else ''}{self._text[slice(*stretch)]}{last.closing if last else ''}"

    def _block_at(self, at: int) -> Block | None:
        index = bisect_left(self._blocks, at, key=lambda block: block.start) - 1
        return self._blocks[index] if index >= 0 and at < self._blocks[index].end else None

    def _worth_keeping(self, block: Block) -> bool:
        """Whether a block's fences leave room for code, and there is some to be cut; else they are only text."""
        fences = len(block.opening) + len(block.closing)
        if not self._fits(f"{block.opening}{'x' * fences}{block.closing}"):
            return False
        return bool(self._text[block.body : block.tail].strip()) or self._fits(self._text[block.start : block.end])


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


def graphemes(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The graphemes of a stretch, each what a reader takes for one character (UAX #29)."""
    return ((start + begin, start + stop) for begin, stop, _ in grapheme_iter_with_offsets(text[start:end]))


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
