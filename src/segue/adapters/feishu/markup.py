"""Feishu's Markdown, in rich texts and cards: of what an agent writes, as much as both of them show.

Only a mention of one person by their id passes: all else that Feishu would act upon, `<at id=all>` above all, is text.
"""

import json
import re
from collections.abc import Sequence

from markdown_it.tree import SyntaxTreeNode as Node

from segue.adapters.shared.markup import LINES, Mark, between, blocks, fenced, instead, rendered, target
from segue.core.text.splitting import MessageRoom

LARGEST = 28_000
"""Bytes of a text in its JSON: a rich text or a card has 30 KB, some of which is its form."""
_WORST = 12
"""Bytes that a character may become: its pair of escapes in a JSON that stands in a JSON."""
_MENTION = re.compile(r"<at id=(ou_[0-9A-Za-z]+)></at>")
_BROKEN = "<\u200b"
_TAG = re.compile(r"<(?=/?[A-Za-z])")
_AT = re.compile(r"<(?=/?at\b)")
"""What calls somebody: harmless also in code, where all else stays as it is."""


def mention(user: str) -> str:
    return f"<at id={user}></at>"


def render(text: str) -> str:
    """A text as cards show it."""
    return rendered(text, _MARKS, escape) or escape(text)


def in_post(text: str) -> str:
    """What was rendered, as rich texts show it: they name people in another way."""
    return _MENTION.sub(r'<at user_id="\1"></at>', text)


def escape(text: str) -> str:
    """A text in which Feishu finds no tag to act upon, but for mentions of one person."""
    parts = _MENTION.split(text)
    return "".join(mention(part) if n % 2 else _TAG.sub(_BROKEN, part) for n, part in enumerate(parts))


def _size(text: str) -> int:
    return len(json.dumps(json.dumps(text, ensure_ascii=False), ensure_ascii=False).encode("utf-8", "replace"))


def _link(node: Node, inside: Sequence[str]) -> str:
    """A link, and of a picture too: Feishu shows only pictures that it keeps, and refuses the message otherwise."""
    url, text = target(node), "".join(inside) or node.content
    if not url.startswith(("http://", "https://")) or ")" in url:
        return text or escape(url)
    return f"[{text or url}]({url})"


_MARKS: dict[str, Mark] = {
    **LINES,
    **blocks(lambda code, of: fenced(_AT.sub(_BROKEN, code), of)),
    "heading": between("**", "**"),
    "strong": between("**", "**"),
    "em": between("*", "*"),
    "s": between("~~", "~~"),
    "code_inline": lambda node, _: f"`{_AT.sub(_BROKEN, node.content)}`",
    "link": _link,
    "image": _link,
    "hr": instead("---"),
}

fits = MessageRoom(
    LARGEST,
    most=lambda text: _WORST * len(text),
    size=lambda text: _size(render(text)),
    readable=LARGEST,
)
"""The room of a card or a rich text."""
