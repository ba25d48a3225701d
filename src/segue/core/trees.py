"""The branches of a session: what was forked or spawned from it, and what it left behind itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from segue.core.transcripts import Entry, Tip
from segue.core.values import SessionId, Value

_SHORT = 60


class Abandoned(Value, frozen=True):
    """A branch of a session's own that its tip has left: nothing is deleted, and it isn't read any more."""

    after: int
    """The number of the entry that it follows; 0 if none."""
    entries: int
    text: str
    """How it begins."""


class Branch(Value, frozen=True):
    """A session in the tree."""

    id: SessionId
    title: str
    label: str
    """What its parent calls it, if that spawned it under a name."""
    after: int
    """The number of its parent's entry that it goes on from; 0 if none."""
    entries: int
    """How many it has written itself, those that it abandoned included."""
    abandoned: tuple[Abandoned, ...]
    branches: tuple[Branch, ...]


def abandoned(own: Sequence[Entry], path: set[Tip]) -> Iterator[Abandoned]:
    """What isn't on the path, each piece by where it leaves the path."""
    pieces: dict[Tip, list[Entry]] = {}
    root: dict[Tip, Tip] = {}
    for entry in own:  # none comes before its parent
        if entry.tip in path:
            continue
        first = root[entry.tip] = root.get(entry.parent, entry.tip) if entry.parent else entry.tip
        pieces.setdefault(first, []).append(entry)
    for piece in pieces.values():
        parent = piece[0].parent
        after = parent.n if parent and parent.session == piece[0].tip.session else 0
        yield Abandoned(after, len(piece), piece[0].text)


def draw(tree: Branch, named: Callable[[Branch], str]) -> Iterator[str]:
    """The tree, one line a branch, each by the name that it is given."""
    yield f"{named(tree)} · {_entries(tree.entries)}"
    yield from _below(tree, "", named)


def _below(tree: Branch, indent: str, named: Callable[[Branch], str]) -> Iterator[str]:
    items: list[Abandoned | Branch] = [*tree.abandoned, *tree.branches]
    items.sort(key=lambda item: item.after)
    for at, item in enumerate(items, 1):
        knee, further = ("└─ ", "   ") if at == len(items) else ("├─ ", "│  ")
        where = f"after {item.after}" if item.after else "from the start"
        if isinstance(item, Abandoned):
            yield f"{indent}{knee}{where}: abandoned, {_entries(item.entries)}, “{_short(item.text)}”"
        else:
            yield f"{indent}{knee}{where}: {named(item)} · {_entries(item.entries)}"
            yield from _below(item, indent + further, named)


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _short(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _SHORT else f"{line[: _SHORT - 1]}…"
