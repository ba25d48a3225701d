"""Slack's mrkdwn: Markdown as Slack reads it, and what people wrote as it reads elsewhere.

Only a mention of one person by their id passes: all else that Slack would act upon, `<!channel>` above all, is text.
"""

import re
from collections.abc import Mapping, Sequence

from markdown_it.tree import SyntaxTreeNode as Node

from segue.adapters.shared.markup import LINES, Mark, between, blocks, fenced, html_text, rendered, target, utf16
from segue.core.text.markdown import parse
from segue.core.text.splitting import MessageRoom

LONGEST = 4000
"""Characters of a text that can be changed afterwards."""
_WORST = 6
"""Times that a text may grow when it is rendered."""
_MENTION = re.compile(r"&lt;@([UW][A-Z0-9]+)&gt;")
_MARKED = re.compile(r"<([^<>]*)>")
_UNFIT = re.compile(r"://|<[!#]")
MENTIONED = re.compile(r"<@([A-Z0-9]+)(?:\|[^<>]*)?>")


def render(text: str) -> str:
    return rendered(text, _MARKS, escape)


def streamable(text: str) -> bool:
    """Whether a text can be shown as Markdown, as streams have it: those know no tables, look into links, and call."""
    if _UNFIT.search(text):
        return False
    return "|" not in text or all(node.type != "table" for node in parse(text).walk())


def escape(text: str) -> str:
    """A text in which Slack finds nothing to act upon, but for mentions of one person."""
    return _MENTION.sub(r"<@\1>", html_text(text))


def plain(text: str, names: Mapping[str, str]) -> str:
    """The words that somebody typed, without Slack's marks for people, channels and links."""
    shown = _MARKED.sub(lambda found: _shown(found[1], names), text)
    return shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _shown(mark: str, names: Mapping[str, str]) -> str:
    what, _, label = mark.partition("|")
    match what[:1]:
        case "@":
            return f"@{names.get(what[1:]) or label or what[1:]}"
        case "#":
            return f"#{label or what[1:]}"
        case "!":
            return label or f"@{what[1:].partition('^')[0]}"
        case _:
            return f"[{label}]({what})" if label and label not in what else what


def _link(node: Node, inside: Sequence[str]) -> str:
    """A link, if Slack takes it for one: what leads elsewhere is its text."""
    url, text = html_text(target(node)), "".join(inside)
    if not url.startswith(("http://", "https://", "mailto:")) or "|" in url or "<" in text:
        return text or url
    return f"<{url}|{text.replace('|', '¦')}>" if text and text != url else f"<{url}>"


_MARKS: dict[str, Mark] = {
    **LINES,
    **blocks(lambda code, _: fenced(html_text(code))),
    "heading": between("*", "*"),
    "strong": between("*", "*"),
    "em": between("_", "_"),
    "s": between("~", "~"),
    "code_inline": lambda node, _: f"`{html_text(node.content)}`",
    "link": _link,
    "image": _link,
}

fits = MessageRoom(
    LONGEST,
    most=lambda text: _WORST * len(text),
    size=lambda text: utf16(render(text)),
    readable=LONGEST,
)
"""The room of a message that can be changed afterwards."""
