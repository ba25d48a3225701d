"""Markdown as Signal's text: the words, and beside them which stretches are bold, italic, struck or code."""

from collections.abc import Sequence

from markdown_it.tree import SyntaxTreeNode as Node

from segue.adapters.shared.markup import LINES, Mark, blocks, rendered, target
from segue.core.text.splitting import MessageRoom

LONGEST = 2000
"""Bytes of a text that goes out in the message itself."""
_STYLES = ("BOLD", "ITALIC", "STRIKETHROUGH", "MONOSPACE")
_OPENS, _CLOSES = 0xF0000, 0xF0100
"""The first of the characters that nobody types: while a text is written, they stand where a style begins and ends."""
_RESERVED = {at + n: None for at in (_OPENS, _CLOSES) for n in range(len(_STYLES))}


def render(text: str) -> tuple[str, list[str]]:
    """The words of a text, and its styles as signal-cli takes them; what would show nothing is sent as it is."""
    written, styles = _parted(rendered(text, _MARKS, _escape))
    if not written.strip() or (size(written) > LONGEST >= size(text)):
        return text, []
    return written, styles


def size(text: str) -> int:
    """The bytes of a text, by which Signal counts."""
    return len(text.encode(errors="replace"))


def _parted(written: str) -> tuple[str, list[str]]:
    """A text without the characters that stand for styles, and the stretches between them."""
    words, at, begun, styles = list[str](), 0, dict[int, list[int]](), list[str]()
    for character in written:
        code = ord(character)
        if _OPENS <= code < _OPENS + len(_STYLES):
            begun.setdefault(code - _OPENS, []).append(at)
        elif _CLOSES <= code < _CLOSES + len(_STYLES):
            start = begun[code - _CLOSES].pop()
            if at > start:
                styles.append(f"{start}:{at - start}:{_STYLES[code - _CLOSES]}")
        else:
            words.append(character)
            at += 2 if code > 0xFFFF else 1
    return "".join(words), styles


def _escape(text: str) -> str:
    return text.translate(_RESERVED)


def _styled(style: str, text: str) -> str:
    n = _STYLES.index(style)
    return f"{chr(_OPENS + n)}{text}{chr(_CLOSES + n)}"


def _as(style: str) -> Mark:
    return lambda _, inside: _styled(style, "".join(inside))


def _link(node: Node, inside: Sequence[str]) -> str:
    """A link, with its address to be seen: Signal has no others."""
    url, text = _escape(target(node)), "".join(inside)
    return f"{text} ({url})" if text and text != url else url


_MARKS: dict[str, Mark] = {
    **LINES,
    **blocks(lambda code, _: _styled("MONOSPACE", _escape(code))),
    "heading": _as("BOLD"),
    "strong": _as("BOLD"),
    "em": _as("ITALIC"),
    "s": _as("STRIKETHROUGH"),
    "code_inline": lambda node, _: _styled("MONOSPACE", _escape(node.content)),
    "link": _link,
    "image": _link,
}


def _written_size(text: str) -> int:
    return size(_parted(rendered(text, _MARKS, _escape))[0])


fits = MessageRoom(LONGEST, most=lambda text: 2 * size(text), size=_written_size, readable=LONGEST)
"""The room of a message. A text of half that length goes out at worst without its styles."""
