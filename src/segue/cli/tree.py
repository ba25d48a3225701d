"""The branches of a session: what was forked or spawned from it, and what it left behind itself."""

from __future__ import annotations

from collections.abc import Iterator

from segue.cli.showing import short
from segue.core.transcripts import Entry, Session, Tip
from segue.core.values import SessionId, Value
from segue.store.store import Store


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


async def branch(store: Store, session: Session) -> Branch:
    """A session with all that grew out of it."""
    own = [entry async for entry in store.entries(session.id)]
    path = {entry.tip for entry in await store.path(session.id)}
    origin = own[0].parent if own else session.tip
    after = origin.n if origin and origin.session == session.parent else 0
    branches = [await branch(store, child) for child in await store.branches(session.id)]
    return Branch(
        session.id,
        session.title,
        session.label,
        after,
        len(own),
        tuple(_abandoned(own, path)),
        tuple(sorted(branches, key=lambda child: (child.after, child.id))),
    )


def _abandoned(own: list[Entry], path: set[Tip]) -> Iterator[Abandoned]:
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


def draw(tree: Branch) -> Iterator[str]:
    """The tree, one line a branch."""
    yield f"{_named(tree)} · {_entries(tree.entries)}"
    yield from _below(tree, "")


def _below(tree: Branch, indent: str) -> Iterator[str]:
    items: list[Abandoned | Branch] = [*tree.abandoned, *tree.branches]
    items.sort(key=lambda item: item.after)
    for at, item in enumerate(items, 1):
        knee, further = ("└─ ", "   ") if at == len(items) else ("├─ ", "│  ")
        where = f"after {item.after}" if item.after else "from the start"
        if isinstance(item, Abandoned):
            yield f"{indent}{knee}{where}: abandoned, {_entries(item.entries)}, “{short(item.text)}”"
        else:
            yield f"{indent}{knee}{where}: {_named(item)} · {_entries(item.entries)}"
            yield from _below(item, indent + further)


def _named(tree: Branch) -> str:
    name = tree.title or tree.label
    return f"{name} ({tree.id})" if name else tree.id


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"
