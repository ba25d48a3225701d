"""Markdown as Discord's own, which knows neither tables nor pictures, and whose marks must not come by accident."""

import re
from collections.abc import Sequence

from markdown_it.tree import SyntaxTreeNode as Node

from segue.adapters.shared.markup import LINES, Mark, between, blocks, fenced, listed, rendered, target, utf16
from segue.core.text.splitting import MessageRoom

LONGEST = 2000
_DEEPEST_HEADING = 3
_MEANT = re.compile(r"(?P<address>https?://[^\s<]+)|[\\*_~|`\[]|^\s*[>#+-]|^\s*\d+\.(?=\s)", re.MULTILINE)
"""Addresses, which stay as they are, and whatever Discord could take for a mark."""


def render(text: str) -> str:
    """A text as Discord reads it; as it is, if that would be longer than a message or shows nothing."""
    found = rendered(text, _MARKS, _escape)
    return found if found.strip() and utf16(found) <= LONGEST else text


def mention(user: str) -> str:
    """Somebody by their id."""
    return f"<@{user}>"


def _escape(text: str) -> str:
    return _MEANT.sub(lambda found: found["address"] or f"{found[0][:-1]}\\{found[0][-1]}", text)


def _heading(node: Node, inside: Sequence[str]) -> str:
    level = len(node.markup) if node.markup.startswith("#") else int(node.tag[1:])
    text = "".join(inside).replace("\n", " ")
    return f"{'#' * level} {text}" if level <= _DEEPEST_HEADING else f"**{text}**"


def _code(node: Node, _: Sequence[str]) -> str:
    code = node.content.replace("`", "\u02cb") if "``" in node.content else node.content
    return f"``{code}``" if "`" in code else f"`{code}`"


def _link(node: Node, inside: Sequence[str]) -> str:
    """A link; one whose words look like an address isn't taken for one by Discord, and so only leads where it says."""
    url, text = target(node), "".join(inside)
    if not text or text == url or not url.startswith(("http://", "https://")) or re.search(r"[\s)]", url):
        return text or url
    return f"{text} ({url})" if "://" in text else f"[{text}]({url})"


_MARKS: dict[str, Mark] = {
    **LINES,
    **blocks(fenced),
    "heading": _heading,
    "strong": between("**", "**"),
    "em": between("*", "*"),
    "s": between("~~", "~~"),
    "code_inline": _code,
    "bullet_list": lambda node, items: listed(node, items).replace("• ", "- "),
    "link": _link,
    "image": _link,
}


def _size(text: str) -> int:
    return max(utf16(text), utf16(rendered(text, _MARKS, _escape)))


fits = MessageRoom(LONGEST, most=lambda text: 2 * utf16(text), size=_size, readable=LONGEST)
"""The room of a message. A text of half that length goes out at worst without its marks."""
