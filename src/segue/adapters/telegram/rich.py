"""Markdown as a rich message of Telegram's, which has tables, headings, lists and maths.

It goes out as HTML of our own making, never as Markdown: that may name pictures, which Telegram would fetch, and so
tell their server whatever the agent wrote into their address.
"""

from collections.abc import Sequence
from html import escape

from markdown_it.tree import SyntaxTreeNode as Node

from segue.adapters.shared.markup import HTML, Mark, between, html_text, instead, written
from segue.adapters.telegram.markup import link
from segue.core.text.markdown import blocks, parse

_LONGEST = 32_768
_WORTH_IT = frozenset({"table", "heading", "bullet_list", "ordered_list"})
_FORMULAS = {"$$": "$$", r"\[": r"\]", r"\(": r"\)"}
_HELD = 0xE000
"""The first of the characters that nobody types: each stands for a formula while the rest is read as Markdown."""
_MOST = 500


def rich(text: str) -> str:
    """The text as a rich message; empty if the plain form says as much, or it can't be one."""
    if any(_HELD <= ord(character) < _HELD + _MOST for character in text):
        return ""
    rest, formulas = _taken_out(text)
    tree = parse(rest)
    if not formulas and not any(node.type in _WORTH_IT for node in tree.walk()):
        return ""
    html = written(tree, _MARKS, html_text)
    for n, formula in enumerate(formulas):
        held, maths = chr(_HELD + n), html_text(formula)
        html = html.replace(f"<p>{held}</p>", f"<tg-math-block>{maths}</tg-math-block>")
        html = html.replace(held, f"<tg-math>{maths}</tg-math>")
    return html if len(html) <= _LONGEST else ""


def _taken_out(text: str) -> tuple[str, list[str]]:
    """A text with a character for each formula that isn't in a block of code, and the formulas."""
    rest, formulas, at = "", list[str](), 0
    code = [(block.start, block.end) for block in blocks(text)]
    for _ in range(_MOST):
        found = min(((text.find(mark, at), mark) for mark in _FORMULAS if text.find(mark, at) >= 0), default=None)
        if found is None:
            break
        start, mark = found
        within = next((end for begin, end in code if begin <= start < end), 0)
        end = text.find(_FORMULAS[mark], start + len(mark))
        if within or end < 0:
            after = within or start + len(mark)
            rest, at = rest + text[at:after], after
            continue
        formulas.append(text[start + len(mark) : end].strip())
        rest, at = rest + text[at:start] + chr(_HELD + len(formulas) - 1), end + len(mark)
    return rest + text[at:], formulas


def _cell(node: Node, inside: Sequence[str]) -> str:
    side = str(node.attrs.get("style", "")).removeprefix("text-align:")
    aligned = f' align="{escape(side)}"' if side else ""
    return f"<{node.tag}{aligned}>{''.join(inside)}</{node.tag}>"


_MARKS: dict[str, Mark] = {
    **HTML,
    "table": between("<table bordered>", "</table>"),
    "thead": between("", ""),
    "tbody": between("", ""),
    "th": _cell,
    "td": _cell,
    "link": link,
    "image": link,
    "hr": instead("<hr/>"),
    "softbreak": instead("\n"),
    "hardbreak": instead("\n"),
}
