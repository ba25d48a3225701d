"""Markdown as the HTML that Matrix clients show."""

from collections.abc import Callable
from html import escape

from markdown_it.tree import SyntaxTreeNode

from segue.core.text.markdown import parse, words

_PLAIN = frozenset({"root", "paragraph", "inline", "text", "softbreak"})
_TAGS = {
    "paragraph": "p",
    "strong": "strong",
    "em": "em",
    "s": "del",
    "blockquote": "blockquote",
    "bullet_list": "ul",
    "list_item": "li",
    "table": "table",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "th": "th",
    "td": "td",
}


def html(text: str) -> str:
    """The text with its marks shown; empty if it has none."""
    tree = parse(text)
    return "" if all(node.type in _PLAIN for node in tree.walk()) else _inside(tree)


def _shown(node: SyntaxTreeNode) -> str:
    if node.type in _OWN:
        return _OWN[node.type](node)
    if node.type in _TAGS and not node.hidden:
        return f"<{_TAGS[node.type]}>{_inside(node)}</{_TAGS[node.type]}>"
    return _inside(node) if node.children else _text(node)


def _inside(node: SyntaxTreeNode) -> str:
    return "".join(map(_shown, node.children))


def _text(node: SyntaxTreeNode) -> str:
    return escape(node.content, quote=False)


def _code(node: SyntaxTreeNode) -> str:
    language = node.info.split(maxsplit=1)[0] if node.info.strip() else ""
    named = f' class="language-{escape(language)}"' if language else ""
    return f"<pre><code{named}>{_text(node)}</code></pre>"


def _link(node: SyntaxTreeNode) -> str:
    return f'<a href="{escape(str(node.attrs.get("href", "")))}">{_inside(node)}</a>'


def _image(node: SyntaxTreeNode) -> str:
    """A link: clients show only pictures that a homeserver holds."""
    address = str(node.attrs.get("src", ""))
    return f'<a href="{escape(address)}">{escape(words(node) or address, quote=False)}</a>'


def _numbered(node: SyntaxTreeNode) -> str:
    start = f' start="{node.attrs["start"]}"' if "start" in node.attrs else ""
    return f"<ol{start}>{_inside(node)}</ol>"


_OWN: dict[str, Callable[[SyntaxTreeNode], str]] = {
    "code_block": _code,
    "code_inline": lambda node: f"<code>{_text(node)}</code>",
    "fence": _code,
    "hardbreak": lambda _: "<br>",
    "heading": lambda node: f"<{node.tag}>{_inside(node)}</{node.tag}>",
    "hr": lambda _: "<hr>",
    "image": _image,
    "link": _link,
    "ordered_list": _numbered,
    "softbreak": lambda _: "<br>",
}
