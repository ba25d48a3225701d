"""Trees: a session with all that grew out of it, as far as it is its owner's."""

from __future__ import annotations

from segue.core.contracts import Transaction
from segue.core.transcripts import Entry, Session
from segue.core.trees import Branch, abandoned
from segue.store import sessions, transcripts
from segue.store.rows import session_of
from segue.store.statements import q

_PAGE = 500


def tree(session: Session) -> Transaction[Branch]:
    """A session with all of its owner's that grew out of it."""
    own: list[Entry] = []
    while found := (yield from sessions.entries_since(session.id, own[-1].tip.n if own else 0, _PAGE)):
        own += found
    entries = yield from transcripts.path(session.tip)
    path = {entry.tip for entry in entries}
    origin = own[0].parent if own else session.tip
    after = origin.n if origin and origin.session == session.parent else 0
    children = yield from sessions.branches(session.id)
    branches: list[Branch] = []
    for child in children:
        if child.owner == session.owner:
            branches += [(yield from tree(child))]
    return Branch(
        session.id,
        session.title,
        session.label,
        after,
        len(own),
        tuple(abandoned(own, path)),
        tuple(sorted(branches, key=lambda child: (child.after, child.id))),
    )


def root(session: Session) -> Transaction[Session]:
    """The session of the same owner's that all began with."""
    while session.parent is not None:
        [row] = yield q.session(session=session.parent)
        parent = session_of(row)
        if parent.owner != session.owner:
            break
        session = parent
    return session
