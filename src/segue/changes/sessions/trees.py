"""Trees: a session with all that grew out of it, as far as it is its owner's.

Law: what was said isn't read for it, only how the entries hang together, page by page; and of each branch that a
session left, how it begins.
"""

from collections.abc import Callable

from segue.changes.rows import each, one
from segue.changes.sessions import sessions, transcripts
from segue.core.contracts.database import Transaction
from segue.core.exports.tree import Abandoned, Branch, Link, off_path, pieces
from segue.core.transcripts import Session, Tip
from segue.core.values import SessionId, Value
from segue.database.statements import q

_PAGE = 1000
_EVERY = 2**31 - 1


class Following(Value, frozen=True):
    """An entry's number, and the entry that it follows."""

    n: int
    parent: Tip | None


Shown = Callable[[Session], Transaction[bool]]
"""Whether a session may be shown."""


def every(_session: Session) -> Transaction[bool]:
    """Show all."""
    yield from ()
    return True


def tree(root: Session, shown: Shown = every) -> Transaction[tuple[Branch, ...]]:
    """A session with all of its owner's that grew out of it and may be shown, itself first."""
    found, waiting = list[Branch](), [root]
    while waiting:
        session = waiting.pop()
        found += [(yield from _branch(session))]
        children = yield from sessions.branches(session.id)
        for child in sorted(children, key=lambda child: child.id, reverse=True):
            waiting += [child] if child.owner == root.owner and (yield from shown(child)) else []
    return tuple(found)


def _branch(session: Session) -> Transaction[Branch]:
    at = session.tip.n if session.tip and session.tip.session == session.id else 0
    origin, off, entries, n = session.tip, list[Link](), 0, _EVERY
    while page := (yield from each(Following, q.links(session=session.id, before=n, count=_PAGE))):
        links = [Link(h.n, h.parent.n if h.parent and h.parent.session == session.id else 0) for h in page]
        left, at = off_path(links, at)
        off += left
        entries, n, origin = entries + len(page), page[-1].n, page[-1].parent
    after = origin.n if origin and origin.session == session.parent else 0
    abandoned = yield from _abandoned(session.id, off)
    return Branch(session.id, session.parent, session.title, session.label, after, entries, abandoned)


def _abandoned(session: SessionId, off: list[Link]) -> Transaction[tuple[Abandoned, ...]]:
    found: list[Abandoned] = []
    for piece in pieces(off):
        entry = yield from transcripts.entry(Tip(session, piece.first.n))
        found += [Abandoned(piece.first.after, piece.entries, entry.text if entry else "", piece.last)]
    return tuple(found)


def root(session: Session, shown: Shown = every) -> Transaction[Session]:
    """The session of the same owner's that all began with, as far up as may be shown."""
    while session.parent is not None:
        parent = yield from one(Session, q.session(session=session.parent))
        if parent.owner != session.owner or not (yield from shown(parent)):
            break
        session = parent
    return session
