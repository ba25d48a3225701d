"""Splits a text into messages that a platform takes.

Law: nothing is cut that fits into a message by itself. So a text is cut between paragraphs; only a paragraph that is
too long for any message is cut between list items or lines, then sentences, words, and at last characters. A block of
code that has to be cut is closed and opened again. Only white space is lost, and every piece fits.

Law: a split renders at most twice as many characters as the text has. Beyond that, pieces are as long as surely
fits.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from apsw.unicode import grapheme_iter_with_offsets

from segue.core.text.markdown import Block, blocks, spans
from segue.core.values import Live

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
_RENDERED = 2
"""Characters that a split may render, for each character of the text."""
SHORT = 1_000
"""Characters of a text that is split at once; a longer one is split in a thread."""
_GUESSES = 4
"""Renderings to find the end of one piece."""


class MessageRoom(Live, frozen=True):
    """The room of one message on a platform that renders Markdown: it fits a text that is small enough once rendered.

    Rendering takes time. So the characters are counted first, and the text is rendered only if that leaves a doubt.
    """

    longest: int
    """The largest size, in the platform's own unit."""
    most: Callable[[str], int]
    """Return a size that the rendered text won't exceed, or doesn't need to: it can go out without its marks."""
    size: Callable[[str], int]
    """Return the size of the rendered text."""
    readable: int
    """Characters of the longest text that may fit."""

    def surely(self, text: str) -> bool:
        """Return whether a text fits by its characters alone."""
        return self.most(text) <= self.longest

    def __call__(self, text: str) -> bool:
        """Return whether a text fits."""
        return self.surely(text) or (len(text) <= self.readable and self.size(text) <= self.longest)


def split(text: str, fits: Fits) -> Iterator[str]:
    """A text as messages, in order and made one by one; none if nothing of it can be seen."""
    if not text.strip():
        return
    if fits(text):
        yield text
        return
    yield from _Pieces(text, fits).all()


class _Scale:
    """Weighs texts against the room of a message, within a budget of rendered characters."""

    def __init__(self, text: str, fits: Fits) -> None:
        room = fits if isinstance(fits, MessageRoom) else None
        self.surely: Fits = room.surely if room else fits
        self._room = room
        self._left = _RENDERED * len(text)
        if room and len(text) <= room.readable:
            self._left -= len(text)  # the whole text was rendered to find that it doesn't fit
        self._density = 1.0
        """The size of a character, as the last text had it."""
        self._known: dict[str, bool] = {}

    @property
    def renders(self) -> bool:
        """Whether a text that doesn't surely fit may fit all the same."""
        return self._room is not None

    @property
    def characters(self) -> int:
        """The number of characters that probably fit."""
        return int(min(self._room.longest / self._density, self._room.readable)) if self._room else 0

    def fits(self, text: str) -> bool:
        """Return whether a text fits; no, if finding out would exceed the budget."""
        if self.surely(text):
            return True
        if self._room is None or len(text) > self._room.readable:
            return False
        if text not in self._known:
            if self._left < len(text):
                return False
            self._left -= len(text)
            size = self._room.size(text)
            self._density = max(size, 1) / len(text)
            self._known[text] = size <= self._room.longest
        return self._known[text]


class _Pieces:
    """A text on its way into pieces, each of which is a stretch of it."""

    def __init__(self, text: str, fits: Fits) -> None:
        self._text = text
        self._scale = _Scale(text, fits)
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
            elif self._growing and (not smaller or self._scale.fits(self._piece(left[0]))):
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
        """The number of these that a piece takes from there."""
        surely = self._surely_taken(begin, stretches)
        return self._filled(begin, stretches, surely) if self._scale.renders else surely

    def _surely_taken(self, begin: int, stretches: list[Stretch]) -> int:
        """The number that surely fits: steps that double, then halve, ask few times."""
        taken, step = 0, 1
        while self._surely_takes(begin, stretches, taken + step):
            taken, step = taken + step, 2 * step
        while step := step // 2:
            if self._surely_takes(begin, stretches, taken + step):
                taken += step
        return taken

    def _surely_takes(self, begin: int, stretches: list[Stretch], count: int) -> bool:
        return count <= len(stretches) and self._scale.surely(self._piece((begin, stretches[count - 1][1])))

    def _filled(self, begin: int, stretches: Sequence[Stretch], taken: int) -> int:
        """The number that fits, at least those taken: the size of each guess tells how long the next one may be."""
        too_many = len(stretches) + 1
        for _ in range(_GUESSES):
            count = bisect_right(stretches, begin + self._scale.characters, key=lambda stretch: stretch[1])
            if count <= taken and (taken or self._growing):
                break  # another one probably doesn't fit
            count = min(max(count, 1), too_many - 1)
            if count <= taken:
                break
            if self._scale.fits(self._piece((begin, stretches[count - 1][1]))):
                taken = count
            else:
                too_many = count
        return taken

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
        if not self._scale.surely(f"{block.opening}{'x' * fences}{block.closing}"):
            return False
        return bool(self._text[block.body : block.tail].strip()) or self._scale.surely(
            self._text[block.start : block.end]
        )


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
