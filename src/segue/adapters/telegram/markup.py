"""Markdown as Telegram's HTML, which knows letters, quotes, code and links, and neither lists, headings nor tables."""

import re
from collections.abc import Sequence
from html import escape, unescape
from urllib.parse import urlsplit

from markdown_it.tree import SyntaxTreeNode as Node

from segue.adapters.shared.markup import LINES, Mark, between, blocks, html_text, rendered, target

_TAG = re.compile(r"<[^>]*>")
_SCHEMES = {"http", "https", "mailto", "tel", "tg"}


def render(text: str) -> str:
    """A text as Telegram reads it."""
    return rendered(text, _MARKS, html_text)


def visible(html: str) -> str:
    """The part of a rendered text that is seen, which is what Telegram counts."""
    return unescape(_TAG.sub("", html))


def _quote(_: Node, inside: Sequence[str]) -> str:
    # A quote in a quote is more than Telegram takes.
    text = "\n\n".join(filter(None, inside)).replace("<blockquote>", "").replace("</blockquote>", "")
    return f"<blockquote>{text}</blockquote>" if text else ""


def _block(code: str, named: str) -> str:
    code = html_text(code)
    if named and code:
        code = f'<code class="language-{escape(named)}">{code}</code>'
    return f"<pre>{code}</pre>" if code else ""


def link(node: Node, inside: Sequence[str]) -> str:
    """A link, if it leads where Telegram lets one lead."""
    url = target(node)
    text = "".join(inside) or html_text(url)
    try:
        known = urlsplit(url).scheme in _SCHEMES
    except ValueError:
        known = False
    return f'<a href="{escape(url)}">{text}</a>' if known and "<a " not in text else text


_MARKS: dict[str, Mark] = {
    **LINES,
    **blocks(_block),
    "heading": between("<b>", "</b>"),
    "strong": between("<b>", "</b>"),
    "em": between("<i>", "</i>"),
    "s": between("<s>", "</s>"),
    "code_inline": lambda node, _: f"<code>{html_text(node.content)}</code>",
    "blockquote": _quote,
    "link": link,
    "image": link,
}
