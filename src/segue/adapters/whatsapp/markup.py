"""Markdown as WhatsApp reads it: bold, italic, struck out, code, quotes and lists, and neither headings nor tables."""

from segue.adapters.shared.markup import LINES, Mark, between, blocks, fenced, rendered

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
