"""Markdown as the HTML of Telegram's messages, and of its rich messages, which have lists, headings, tables and maths.

Nothing goes out as Markdown: that may name pictures, which Telegram would fetch, and so tell their server whatever the
agent wrote into their address.
"""

import re
from collections.abc import Sequence
from html import escape, unescape

from markdown_it.tree import SyntaxTreeNode as Node

from segue.adapters.shared import markup as shared
from segue.adapters.shared.markup import HTML, LINES, Mark, between, html_link, html_text, instead, target
from segue.core.text.markdown import READABLE, blocks, parse

_TAG = re.compile(r"<[^>]*>")
_SCHEMES = ("http:", "https:", "mailto:", "tel:", "tg:")
_LONGEST_RICH = 32_768
_WORTH_IT = frozenset({"table", "heading", "bullet_list", "ordered_list"})
_OPENING = re.compile(r"\$\$|\\\[|\\\(")
_PERHAPS = re.compile(r"[#|$]|\\[\[(]|^[ \t]*+(?:[>*+=-]|\d+[.)])", re.MULTILINE)
"""What a table, a heading, a list or a formula begins with."""
_CLOSING = {"$$": "$$", r"\[": r"\]", r"\(": r"\)"}
_FIRST = "\ue000"
_HELD = re.compile(rf"(<p>)?([{_FIRST}-\uf8ff])(?(1)</p>)")
"""A character that nobody types: each stands for a formula while the rest is read as Markdown."""


def render(text: str) -> str:
    """A text as a plain message; one of which nothing would be seen, as it is."""
    html = shared.rendered(text, _PLAIN, html_text)
    return html if visible(html).strip() else html_text(text)


def visible(html: str) -> str:
    """The part of a rendered text that is seen, which is what Telegram counts."""
    return unescape(_TAG.sub("", html))


def rich(text: str) -> str:
    """The text as a rich message; empty if the plain form says as much, or it can't be one."""
    if len(text) > READABLE or _HELD.search(text) or not _PERHAPS.search(text):
        return ""
    rest, formulas = _taken_out(text)
    tree = parse(rest)
    if not formulas and not any(node.type in _WORTH_IT for node in tree.walk()):
        return ""

    def maths(held: re.Match[str]) -> str:
        tag = "tg-math-block" if held[1] else "tg-math"
        return f"<{tag}>{html_text(formulas[ord(held[2]) - ord(_FIRST)])}</{tag}>"

    html = _HELD.sub(maths, shared.written(tree, _RICH, html_text))
    return html if len(html) <= _LONGEST_RICH else ""


def _taken_out(text: str) -> tuple[str, list[str]]:
    """A text with a character for each formula that isn't in a block of code, and the formulas."""
    rest, formulas, at, code = "", list[str](), 0, blocks(text)
    for opening in _OPENING.finditer(text):
        start, end = opening.start(), text.find(_CLOSING[opening[0]], opening.end())
        if at <= start < end and not any(block.start <= start < block.end for block in code):
            rest += text[at:start] + chr(ord(_FIRST) + len(formulas))
            formulas.append(text[opening.end() : end].strip())
            at = end + len(_CLOSING[opening[0]])
    return rest + text[at:], formulas


def _quote(_: Node, inside: Sequence[str]) -> str:
    # A quote in a quote is more than Telegram takes.
    text = "\n\n".join(filter(None, inside)).replace("<blockquote>", "").replace("</blockquote>", "")
    return f"<blockquote>{text}</blockquote>" if text else ""


def _block(code: str, named: str) -> str:
    code = html_text(code)
    if named and code:
        code = f'<code class="language-{escape(named)}">{code}</code>'
    return f"<pre>{code}</pre>" if code else ""


def _link(node: Node, inside: Sequence[str]) -> str:
    """A link, if it leads where Telegram lets one lead, and no link is in it."""
    text = "".join(inside) or html_text(target(node))
    return html_link(node, inside) if target(node).lower().startswith(_SCHEMES) and "<a " not in text else text


def _cell(node: Node, inside: Sequence[str]) -> str:
    side = str(node.attrs.get("style", "")).removeprefix("text-align:")
    aligned = f' align="{escape(side)}"' if side else ""
    return f"<{node.tag}{aligned}>{''.join(inside)}</{node.tag}>"


_LINKS: dict[str, Mark] = {"link": _link, "image": _link}
_PLAIN: dict[str, Mark] = {
    **LINES,
    **_LINKS,
    **shared.blocks(_block),
    "heading": between("<b>", "</b>"),
    "strong": between("<b>", "</b>"),
    "em": between("<i>", "</i>"),
    "s": between("<s>", "</s>"),
    "code_inline": HTML["code_inline"],
    "blockquote": _quote,
}
_RICH: dict[str, Mark] = {
    **HTML,
    **_LINKS,
    "table": between("<table bordered>", "</table>"),
    "thead": between("", ""),
    "tbody": between("", ""),
    "th": _cell,
    "td": _cell,
    "hr": instead("<hr/>"),
    "softbreak": instead("\n"),
    "hardbreak": instead("\n"),
}
