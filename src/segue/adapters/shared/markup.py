"""A walk over the Markdown of a text: each platform says how it marks what, and the walk writes it.

A mark is a function of a node and of what was written for its children. What has no mark is what is in it.
"""

from collections.abc import Callable, Mapping, Sequence

from markdown_it.tree import SyntaxTreeNode as Node

from segue.core.text.markdown import parse, words

Mark = Callable[[Node, Sequence[str]], str]
"""How a node is written, once its children are."""
Escape = Callable[[str], str]

_BULLET = "• "
_APART = frozenset({"root", "blockquote"})
"""Nodes whose children stand apart, with a blank line between them."""


def rendered(text: str, marks: Mapping[str, Mark], escape: Escape) -> str:
    """A text as a platform reads it."""
    return written(parse(text), marks, escape)


def written(node: Node, marks: Mapping[str, Mark], escape: Escape) -> str:
    """A node as a platform reads it; `escape` makes text of whatever isn't marked."""
    inside = [written(child, marks, escape) for child in node.children]
    if mark := marks.get(node.type):
        return mark(node, inside)
    if node.children:
        return ("\n\n" if node.type in _APART else "").join(filter(None, inside))
    return "" if node.type in _APART or node.type == "inline" else escape(node.content)


def between(before: str, after: str) -> Mark:
    """A mark that stands before and after what is marked."""
    return lambda _, inside: f"{before}{''.join(inside)}{after}"


def instead(shown: str) -> Mark:
    """Something that is always written the same way."""
    return lambda _, __: shown


def listed(node: Node, items: Sequence[str]) -> str:
    """A list in plain lines, for a platform that has none: what belongs to an item stands beneath it."""
    first = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
    numbered = enumerate(items, first or 0)
    marked = ((_BULLET if first is None else f"{number}. ") + item.replace("\n", "\n  ") for number, item in numbered)
    return "\n".join(marked)


def lines(_: Node, inside: Sequence[str]) -> str:
    """Parts one beneath the other."""
    return "\n".join(filter(None, inside))


def columns(node: Node) -> str:
    """A table in columns of plain text, for a platform that has none: to be shown as code."""
    rows = [[words(cell) for cell in row.children] for row in node.walk() if row.type == "tr"]
    widths = [max(map(len, column)) for column in zip(*rows, strict=False)]
    cells = (zip(row, widths, strict=False) for row in rows)
    return "\n".join(" | ".join(cell.ljust(width) for cell, width in row).rstrip() for row in cells)


def language(node: Node) -> str:
    """The language that a block of code names."""
    return node.info.split(maxsplit=1)[0] if node.type == "fence" and node.info.strip() else ""


def target(node: Node) -> str:
    """Where a link or a picture leads."""
    return str(node.attrs.get("href") or node.attrs.get("src") or "")
