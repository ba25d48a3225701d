"""A walk over the Markdown of a text: each platform says how it marks what, and the walk writes it.

A mark is a function of a node and of what was written for its children. What has no mark is what is in it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape as escaped

from markdown_it.tree import SyntaxTreeNode as Node

from segue.core.text.markdown import parse, words

Mark = Callable[[Node, Sequence[str]], str]
"""The writing of a node, once its children are written."""
Escape = Callable[[str], str]

_BULLET = "• "
_FENCE = re.compile(r"`{3,}")
_PADDED = 250_000
"""Characters of a table with its columns padded; a larger one isn't, since one wide cell would widen every row."""
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
    if len(rows) * sum(widths) > _PADDED:
        widths = [0 for _ in widths]
    cells = (zip(row, widths, strict=False) for row in rows)
    return "\n".join(" | ".join(cell.ljust(width) for cell, width in row).rstrip() for row in cells)


def language(node: Node) -> str:
    """The language that a block of code names."""
    return node.info.split(maxsplit=1)[0] if node.type == "fence" and node.info.strip() else ""


def target(node: Node) -> str:
    """The address that a link or a picture leads to."""
    return str(node.attrs.get("href") or node.attrs.get("src") or "")


def linked(node: Node, inside: Sequence[str]) -> str:
    """A link with its address to be seen, for a platform that has no others."""
    url, text = target(node), "".join(inside)
    return f"{text} ({url})" if text and url and text != url else text or url


def quoted(_: Node, inside: Sequence[str]) -> str:
    """What somebody said, with a sign before each line."""
    return "\n".join(f"> {line}" for line in "\n\n".join(filter(None, inside)).split("\n"))


def fenced(code: str, named: str = "") -> str:
    """A block of code between fences; nothing ends it but its own: one inside is broken up by what nobody sees."""
    return f"```{named}\n" + _FENCE.sub(lambda found: "\u200b".join(found[0]), code) + "\n```"


def blocks(block: Callable[[str, str], str]) -> Mapping[str, Mark]:
    """Marks for code and for tables, given how a platform shows lines as they are, with their language."""

    def code(node: Node, _: Sequence[str]) -> str:
        return block(node.content.rstrip("\n"), language(node))

    return {"fence": code, "code_block": code, "table": lambda node, _: block(columns(node), "")}


LINES: Mapping[str, Mark] = {
    "blockquote": quoted,
    "bullet_list": listed,
    "ordered_list": listed,
    "list_item": lines,
    "hr": instead("———"),
    "softbreak": instead("\n"),
    "hardbreak": instead("\n"),
    "link": linked,
    "image": linked,
}
"""Marks for a platform that shows plain lines."""


def utf16(text: str) -> int:
    """The UTF-16 units of a text, by which many platforms count."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def html_text(text: str) -> str:
    """A text between tags."""
    return escaped(text, quote=False)


def html_code(node: Node, _: Sequence[str]) -> str:
    """A block of code with its language."""
    named = f' class="language-{escaped(language(node))}"' if language(node) else ""
    return f"<pre><code{named}>{html_text(node.content)}</code></pre>"


def html_link(node: Node, inside: Sequence[str]) -> str:
    """A link, and of a picture too: whoever shows a picture fetches it, and so tells its server who reads."""
    return f'<a href="{escaped(target(node))}">{"".join(inside) or html_text(target(node))}</a>'


def _html_paragraph(node: Node, inside: Sequence[str]) -> str:
    return "".join(inside) if node.hidden else f"<p>{''.join(inside)}</p>"


def _html_numbered(node: Node, inside: Sequence[str]) -> str:
    start = f' start="{node.attrs["start"]}"' if "start" in node.attrs else ""
    return f"<ol{start}>{''.join(inside)}</ol>"


_TAGS = {"s": "del", "bullet_list": "ul", "list_item": "li"}
_TAGS |= {kind: kind for kind in ("em", "strong", "blockquote", "table", "thead", "tbody", "tr", "th", "td")}
HTML: Mapping[str, Mark] = {
    **{kind: between(f"<{tag}>", f"</{tag}>") for kind, tag in _TAGS.items()},
    "root": between("", ""),
    "paragraph": _html_paragraph,
    "heading": lambda node, inside: f"<{node.tag}>{''.join(inside)}</{node.tag}>",
    "code_inline": lambda node, _: f"<code>{html_text(node.content)}</code>",
    "code_block": html_code,
    "fence": html_code,
    "link": html_link,
    "image": html_link,
    "ordered_list": _html_numbered,
    "hr": instead("<hr>"),
    "hardbreak": instead("<br>"),
    "softbreak": instead("<br>"),
}
"""Marks for a platform that shows HTML with lists, headings and tables."""
