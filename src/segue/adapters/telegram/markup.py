"""Markdown as Telegram's HTML, which knows letters, quotes, code and links, and neither lists, headings nor tables."""

from collections.abc import Callable
from html import escape
from urllib.parse import urlsplit

from markdown_it.tree import SyntaxTreeNode as Node

from segue.core.text.markdown import parse, words

_TAGS = {"strong": "b", "em": "i", "s": "s"}
_SCHEMES = {"http", "https", "mailto", "tel", "tg"}
_BULLET = "• "
_RULE = "———"


def render(text: str) -> str:
    """A text as Telegram reads it."""
    return _blocks(parse(text))


def visible(html: str) -> str:
    """What of a rendered text is seen, which is what Telegram counts."""
    seen, rest = "", html
    while rest:
        text, _, tag = rest.partition("<")
        seen += text
        rest = tag.partition(">")[2]
    return seen.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")


def utf16(text: str) -> int:
    """How long a text is by Telegram's count."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _blocks(node: Node) -> str:
    return "\n\n".join(filter(None, map(_block, node.children)))


def _block(node: Node) -> str:
    make = _BLOCKS.get(node.type)
    return make(node) if make else _blocks(node)


def _heading(node: Node) -> str:
    return f"<b>{_inline(node)}</b>"


def _quote(node: Node) -> str:
    inside = _blocks(node)
    # A quote in a quote is more than Telegram takes.
    return (
        f"<blockquote>{inside.replace('<blockquote>', '').replace('</blockquote>', '')}</blockquote>" if inside else ""
    )


def _list(node: Node) -> str:
    first = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
    items = []
    for number, item in enumerate(node.children, first or 0):
        mark = _BULLET if first is None else f"{number}. "
        parts = [_block(child) for child in item.children]
        inside = "\n".join(part for part in parts if part)
        indent = " " * 2
        items.append(mark + inside.replace("\n", f"\n{indent}"))
    return "\n".join(items)


def _code(node: Node) -> str:
    code = escape(node.content.rstrip("\n"), quote=False)
    if not code:
        return ""
    language = node.info.split()[0] if node.type == "fence" and node.info.strip() else ""
    inside = f'<code class="language-{escape(language)}">{code}</code>' if language else code
    return f"<pre>{inside}</pre>"


def _table(node: Node) -> str:
    rows = [[words(cell) for cell in row.children] for row in node.walk() if row.type == "tr"]
    widths = [max(map(len, column)) for column in zip(*rows, strict=False)]
    lines = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows]
    return f"<pre>{escape(chr(10).join(lines), quote=False)}</pre>"


def _inline(node: Node) -> str:
    return "".join(map(_span, node.children))


def _span(node: Node) -> str:
    match node.type:
        case "strong" | "em" | "s":
            tag = _TAGS[node.type]
            return f"<{tag}>{_inline(node)}</{tag}>"
        case "code_inline":
            return f"<code>{escape(node.content, quote=False)}</code>"
        case "link" | "image":
            return _link(node)
        case "softbreak" | "hardbreak":
            return "\n"
        case "inline":
            return _inline(node)
        case _:
            return escape(node.content, quote=False)


def _link(node: Node) -> str:
    url = str(node.attrs.get("href") or node.attrs.get("src") or "")
    inside = _inline(node) or escape(url, quote=False)
    try:
        known = urlsplit(url).scheme in _SCHEMES
    except ValueError:
        known = False
    return f'<a href="{escape(url)}">{inside}</a>' if known and "<a " not in inside else inside


_BLOCKS: dict[str, Callable[[Node], str]] = {
    "paragraph": _inline,
    "heading": _heading,
    "blockquote": _quote,
    "bullet_list": _list,
    "ordered_list": _list,
    "fence": _code,
    "code_block": _code,
    "table": _table,
    "hr": lambda _: _RULE,
}
