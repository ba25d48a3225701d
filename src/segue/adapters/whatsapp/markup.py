"""Markdown as WhatsApp reads it: bold, italic, struck out, code, quotes and lists, and neither headings nor tables."""

from segue.adapters.shared.markup import LINES, Mark, between, blocks, fenced, rendered, utf16
from segue.core.text.splitting import MessageRoom

LONGEST = 4096
"""Characters of a message."""
_MARKS: dict[str, Mark] = {
    **LINES,
    **blocks(lambda code, _: fenced(code)),
    "heading": between("*", "*"),
    "strong": between("*", "*"),
    "em": between("_", "_"),
    "s": between("~", "~"),
    "code_inline": lambda node, _: f"`{node.content}`",
}


def render(text: str) -> str:
    """A text as WhatsApp reads it; it has no way to write its own marks as text, so they stay as they are."""
    return rendered(text, _MARKS, str) or text


def _size(text: str) -> int:
    return max(utf16(text), utf16(render(text)))


fits = MessageRoom(LONGEST, most=lambda text: 2 * utf16(text), size=_size, readable=LONGEST)
"""The room of a message from a linked device. A text of half that length goes out at worst without its marks."""
