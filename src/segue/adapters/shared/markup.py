"""Renders Markdown for a platform, by a mark for each kind of node.

A mark is a function of a node and of its rendered children. A node without a mark is rendered as its children.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from html import escape as escaped

from markdown_it.tree import SyntaxTreeNode as Node

from segue.core.text.markdown import parse, words

Mark = Callable[[Node, Sequence[str]], str]
"""Renders a node, given its rendered children."""
Escape = Callable[[str], str]

_BULLET = "• "
_FENCE = re.compile(r"`{3,}")
_PADDED = 250_000
"""The largest table with padded columns, in characters. One wide cell widens every row."""
_APART = frozenset({"root", "blockquote"})
"""Nodes whose children are separated by a blank line."""


def rendered(text: str, marks: Mapping[str, Mark], escape: Escape) -> str:
    """Render a Markdown text for a platform."""
    return written(parse(text), marks, escape)


def written(node: Node, marks: Mapping[str, Mark], escape: Escape) -> str:
    """Render a node for a platform; `escape` renders the plain text."""
    inside = [written(child, marks, escape) for child in node.children]
    if mark := marks.get(node.type):
        return mark(node, inside)
    if node.children:
        return ("\n\n" if node.type in _APART else "").join(filter(None, inside))
    return "" if node.type in _APART or node.type == "inline" else escape(node.content)


def between(before: str, after: str) -> Mark:
    """Return a mark that adds a prefix and a suffix."""
    return lambda _, inside: f"{before}{''.join(inside)}{after}"


def instead(shown: str) -> Mark:
    """Return a mark that always renders the same text."""
    return lambda _, __: shown


def listed(node: Node, items: Sequence[str]) -> str:
    """Render a list in plain lines, for a platform without lists. Nested lines are indented."""
    first = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
    numbered = enumerate(items, first or 0)
    marked = ((_BULLET if first is None else f"{number}. ") + item.replace("\n", "\n  ") for number, item in numbered)
    return "\n".join(marked)


def lines(_: Node, inside: Sequence[str]) -> str:
    """Render parts below each other."""
    return "\n".join(filter(None, inside))


def columns(node: Node) -> str:
    """Render a table as padded columns of plain text, to be shown as code."""
    rows = [[words(cell) for cell in row.children] for row in node.walk() if row.type == "tr"]
    widths = [max(map(len, column)) for column in zip(*rows, strict=False)]
    if len(rows) * sum(widths) > _PADDED:
        widths = [0 for _ in widths]
    cells = (zip(row, widths, strict=False) for row in rows)
    return "\n".join(" | ".join(cell.ljust(width) for cell, width in row).rstrip() for row in cells)


def language(node: Node) -> str:
    """Return the language of a code block."""
    return node.info.split(maxsplit=1)[0] if node.type == "fence" and node.info.strip() else ""


def target(node: Node) -> str:
    """Return the address of a link or picture."""
    return str(node.attrs.get("href") or node.attrs.get("src") or "")


def linked(node: Node, inside: Sequence[str]) -> str:
    """Render a link with its address visible, for a platform without links."""
    url, text = target(node), "".join(inside)
    return f"{text} ({url})" if text and url and text != url else text or url


def quoted(_: Node, inside: Sequence[str]) -> str:
    """Render a quotation with a sign before each line."""
    return "\n".join(f"> {line}" for line in "\n\n".join(filter(None, inside)).split("\n"))


def fenced(code: str, named: str = "") -> str:
    """Render a code block between fences.

    A fence inside the code is broken up with an invisible character, so that it doesn't end the block.
    """
    return f"```{named}\n" + _FENCE.sub(lambda found: "\u200b".join(found[0]), code) + "\n```"


def blocks(block: Callable[[str, str], str]) -> Mapping[str, Mark]:
    """Return marks for code and tables, given the platform's form of preformatted text with its language."""

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
    """Return the length in UTF-16 units, which many platforms count."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def html_text(text: str) -> str:
    """Escape a text for HTML."""
    return escaped(text, quote=False)


def html_code(node: Node, _: Sequence[str]) -> str:
    """Render a code block with its language."""
    named = f' class="language-{escaped(language(node))}"' if language(node) else ""
    return f"<pre><code{named}>{html_text(node.content)}</code></pre>"


def html_link(node: Node, inside: Sequence[str]) -> str:
    """Render a link; a picture becomes a link too.

    A client that loads a picture tells its server who reads the message.
    """
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
