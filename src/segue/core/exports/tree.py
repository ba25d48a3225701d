"""The branches of a session: what was forked or spawned from it, and what it left behind itself.

Law: a tree is a flat row of its sessions, each with its parent, and is walked without recursion: people make it as deep
as they like.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from segue.core.values import SessionId, Value

_SHORT = 60
_LAST = "└─ "


class Abandoned(Value, frozen=True):
    """A branch of a session's own that its tip has left: nothing is deleted, and it isn't read any more."""

    after: int
    """The number of the entry that it follows; 0 if none."""
    entries: int
    text: str
    """Its first words."""
    last: int
    """The number of its newest entry."""


class Branch(Value, frozen=True):
    """A session in the tree."""

    id: SessionId
    parent: SessionId | None
    title: str
    label: str
    """Its parent's name for it, if that spawned it under one."""
    after: int
    """The number of its parent's entry that it goes on from; 0 if none."""
    entries: int
    """The number of entries that it has written itself, abandoned ones included."""
    abandoned: tuple[Abandoned, ...]


class Link(Value, frozen=True):
    """The link of an entry of a session to the one before it."""

    n: int
    after: int
    """The number of the session's own entry that it follows; 0 if it follows none of them."""


class Piece(Value, frozen=True):
    """Entries that hang together and aren't on the way to their session's tip."""

    first: Link
    entries: int
    last: int
    """The number of the newest."""


def off_path(links: Iterable[Link], at: int) -> tuple[list[Link], int]:
    """Of links, the newest first, those that don't lead to entry `at`; and where the way to it goes on."""
    off: list[Link] = []
    for link in links:
        if link.n == at:
            at = link.after
        else:
            off.append(link)
    return off, at


def pieces(off: Iterable[Link]) -> list[Piece]:
    """The entries off the path, the newest first, as pieces by where each leaves the path."""
    first: dict[int, Link] = {}
    count: Counter[Link] = Counter()
    last: dict[Link, int] = {}
    for link in sorted(off, key=lambda link: link.n):  # none comes before the one that it follows
        begun = first[link.n] = first.get(link.after, link)
        count[begun] += 1
        last[begun] = link.n
    return [Piece(link, entries, last[link]) for link, entries in count.items()]


def draw(tree: Sequence[Branch], named: Callable[[Branch], str]) -> Iterator[str]:
    """The tree, its root first, one line a branch, each by the name that it is given."""
    root, *others = tree
    below: dict[SessionId | None, list[Abandoned | Branch]] = {branch.id: [*branch.abandoned] for branch in tree}
    for branch in others:
        below[branch.parent].append(branch)
    yield f"{named(root)} · {_entries(root.entries)}"
    waiting = _upwards(below[root.id], "")
    while waiting:
        item, knee, indent = waiting.pop()
        where = f"after {item.after}" if item.after else "from the start"
        if isinstance(item, Abandoned):
            many = f"{_entries(item.entries)} up to {item.last}"
            yield f"{indent}{knee}{where}: abandoned, {many}, “{_short(item.text)}”"
        else:
            yield f"{indent}{knee}{where}: {named(item)} · {_entries(item.entries)}"
            waiting += _upwards(below[item.id], indent + ("   " if knee == _LAST else "│  "))


def letter(n: int) -> str:
    """The mark of a branch: a to z, then aa, ab and so on."""
    mark = ""
    while n >= 0:
        mark, n = chr(ord("a") + n % 26) + mark, n // 26 - 1
    return mark


def _upwards(items: list[Abandoned | Branch], indent: str) -> list[tuple[Abandoned | Branch, str, str]]:
    """The lines of one branch, the lowest first, each with its knee and its indentation."""
    items.sort(key=lambda item: item.after)
    knees = [*["├─ "] * (len(items) - 1), _LAST]
    return [(item, knee, indent) for item, knee in zip(items, knees, strict=False)][::-1]


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _short(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _SHORT else f"{line[: _SHORT - 1]}…"
