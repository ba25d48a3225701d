"""Markdown as the HTML that Matrix clients show."""

from collections.abc import Sequence
from html import escape

from markdown_it.tree import SyntaxTreeNode as Node

from segue.adapters.shared.markup import Mark, between, instead, language, target, written
from segue.core.text.markdown import parse, words

_PLAIN = frozenset({"root", "paragraph", "inline", "text", "softbreak"})
_NAMED = ("em", "strong", "blockquote", "table", "thead", "tbody", "tr", "th", "td")
_TAGS = {"s": "del", "bullet_list": "ul", "list_item": "li"} | {kind: kind for kind in _NAMED}


def html(text: str) -> str:
    """The text with its marks shown; empty if it has none."""
    tree = parse(text)
    return "" if all(node.type in _PLAIN for node in tree.walk()) else written(tree, _MARKS, _text)


def _text(text: str) -> str:
    return escape(text, quote=False)


def _paragraph(node: Node, inside: Sequence[str]) -> str:
    return "".join(inside) if node.hidden else f"<p>{''.join(inside)}</p>"


def _code(node: Node, _: Sequence[str]) -> str:
    named = f' class="language-{escape(language(node))}"' if language(node) else ""
    return f"<pre><code{named}>{_text(node.content)}</code></pre>"


def _image(node: Node, _: Sequence[str]) -> str:
    """A link: clients show only pictures that a homeserver holds."""
    return f'<a href="{escape(target(node))}">{_text(words(node) or target(node))}</a>'


def _numbered(node: Node, inside: Sequence[str]) -> str:
    start = f' start="{node.attrs["start"]}"' if "start" in node.attrs else ""
    return f"<ol{start}>{''.join(inside)}</ol>"


_MARKS: dict[str, Mark] = {
    **{kind: between(f"<{tag}>", f"</{tag}>") for kind, tag in _TAGS.items()},
    "root": between("", ""),
    "paragraph": _paragraph,
    "code_block": _code,
    "code_inline": lambda node, _: f"<code>{_text(node.content)}</code>",
    "fence": _code,
    "hardbreak": instead("<br>"),
    "softbreak": instead("<br>"),
    "heading": lambda node, inside: f"<{node.tag}>{''.join(inside)}</{node.tag}>",
    "hr": instead("<hr>"),
    "image": _image,
    "link": lambda node, inside: f'<a href="{escape(target(node))}">{"".join(inside)}</a>',
    "ordered_list": _numbered,
}
