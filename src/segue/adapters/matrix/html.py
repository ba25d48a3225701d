"""Markdown as the HTML that Matrix clients show."""

from segue.adapters.shared.markup import HTML, html_text, written
from segue.core.text.markdown import parse

_PLAIN = frozenset({"root", "paragraph", "inline", "text", "softbreak"})


def html(text: str) -> str:
    """The text with its marks shown; empty if it has none."""
    tree = parse(text)
    return "" if all(node.type in _PLAIN for node in tree.walk()) else written(tree, HTML, html_text)
