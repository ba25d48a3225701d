"""Markdown as Discord's own, which knows neither tables nor pictures, and whose marks must not come by accident."""

import re
from collections.abc import Sequence

from markdown_it.tree import SyntaxTreeNode as Node

from segue.adapters.shared.markup import Mark, between, columns, instead, language, lines, listed, rendered, target
from segue.core.text.markdown import READABLE

LONGEST = 2000
_DEEPEST_HEADING = 3
_MEANT = re.compile(r"https?://[^\s<]+|[\\*_~|`\[]|^\s*[>#+-]|^\s*\d+\.(?=\s)", re.MULTILINE)
"""Addresses, which stay as they are, and whatever Discord could take for a mark."""
_FENCE = re.compile(r"`{3,}")


def render(text: str) -> str:
    """A text as Discord reads it; as it is, if that would be longer than a message or shows nothing."""
    found = rendered(text, _MARKS, _escape)
    return found if found.strip() and size(found) <= LONGEST else text


def fits(text: str) -> bool:
    """Whether a text goes out as one message."""
    if size(text) > LONGEST:
        return False
    if 2 * size(text) <= LONGEST:
        return True  # at worst without its marks
    return len(text) <= READABLE and size(rendered(text, _MARKS, _escape)) <= LONGEST


def size(text: str) -> int:
    """The length of a text by the stricter count: a character outside the basic plane is two."""
    return len(text) + sum(character > "\uffff" for character in text)


def mention(user: str) -> str:
    """Somebody by their id."""
    return f"<@{user}>"


def _escape(text: str) -> str:
    return _MEANT.sub(lambda found: _marked(found[0]), text)


def _marked(found: str) -> str:
    return found if found.startswith("http") else f"{found[:-1]}\\{found[-1]}"


def _heading(node: Node, inside: Sequence[str]) -> str:
    level = len(node.markup) if node.markup.startswith("#") else int(node.tag[1:])
    text = "".join(inside).replace("\n", " ")
    return f"{'#' * level} {text}" if level <= _DEEPEST_HEADING else f"**{text}**"


def _quote(_: Node, inside: Sequence[str]) -> str:
    return "\n".join(f"> {line}" for line in "\n\n".join(filter(None, inside)).split("\n"))


def _fenced(code: str, named: str = "") -> str:
    # Nothing ends a block but its fence: one inside is broken up by what nobody sees.
    inside = _FENCE.sub(lambda found: "\u200b".join(found[0]), code.rstrip("\n"))
    return f"```{named}\n{inside}\n```"


def _code(node: Node, _: Sequence[str]) -> str:
    code = node.content.replace("`", "\u02cb") if "``" in node.content else node.content
    return f"``{code}``" if "`" in code else f"`{code}`"


def _list(node: Node, items: Sequence[str]) -> str:
    return listed(node, items).replace("• ", "- ") if node.type == "bullet_list" else listed(node, items)


def _link(node: Node, inside: Sequence[str]) -> str:
    """A link; one whose words look like an address isn't taken for one by Discord, and so only leads where it says."""
    url, text = target(node), "".join(inside)
    if not text or text == url or not url.startswith(("http://", "https://")) or re.search(r"[\s)]", url):
        return text or url
    return f"{text} ({url})" if "://" in text else f"[{text}]({url})"


_MARKS: dict[str, Mark] = {
    "heading": _heading,
    "strong": between("**", "**"),
    "em": between("*", "*"),
    "s": between("~~", "~~"),
    "code_inline": _code,
    "blockquote": _quote,
    "bullet_list": _list,
    "ordered_list": listed,
    "list_item": lines,
    "fence": lambda node, _: _fenced(node.content, language(node)),
    "code_block": lambda node, _: _fenced(node.content),
    "table": lambda node, _: _fenced(columns(node)),
    "link": _link,
    "image": _link,
    "hr": instead("———"),
    "softbreak": instead("\n"),
    "hardbreak": instead("\n"),
}
