"""Markdown as WhatsApp reads it: bold, italic, struck out, code, quotes and lists, and neither headings nor tables."""

from collections.abc import Sequence

from markdown_it.tree import SyntaxTreeNode as Node

from segue.adapters.shared.markup import LINES, Mark, between, blocks, fenced, rendered, target

LONGEST = 4096
"""Characters of a message."""


def render(text: str) -> str:
    """A text as WhatsApp reads it; it has no way to write its own marks as text, so they stay as they are."""
    return rendered(text, _MARKS, str) or text


def _link(node: Node, inside: Sequence[str]) -> str:
    url, text = target(node), "".join(inside)
    return f"{text} ({url})" if text and url and text != url else text or url


_MARKS: dict[str, Mark] = {
    **LINES,
    **blocks(lambda code, _: fenced(code)),
    "heading": between("*", "*"),
    "strong": between("*", "*"),
    "em": between("_", "_"),
    "s": between("~", "~"),
    "code_inline": lambda node, _: f"`{node.content}`",
    "link": _link,
    "image": _link,
}
