"""Sessions as people find them: what a lane speaks to, what a person owns, the lists they were shown."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from segue.changes.people import actors
from segue.changes.places.lanes import now
from segue.changes.sessions.rows import binding_of, entry_of, session_of, standing_of
from segue.core.bindings import Binding, Standing
from segue.core.contracts.database import Transaction
from segue.core.lanes import Lane
from segue.core.transcripts import Entry, Session
from segue.core.values import Moment, PersonId, SessionId
from segue.database.statements import q
from segue.errors import Refusal, Refused

_EVER = 1e18
_MOST = 1000


def bound(lane: Lane) -> Transaction[Session | None]:
    """The session that a lane speaks to."""
    rows = yield q.bound(lane=(yield from now(lane)).key)
    if not rows or rows[0][0] is None:
        return None
    [row] = yield q.session(session=rows[0][0])
    return session_of(row)


def lanes(session: SessionId) -> Transaction[list[Lane]]:
    """The lanes that speak to a session now, the newest first."""
    rows = yield q.lanes_bound(session=session)
    return [Lane.parse(lane) for (lane,) in rows]


def all_lanes(after: str, count: int) -> Transaction[list[Standing]]:
    """Lanes by their keys, with what they speak to, from the one after this key on."""
    rows = yield q.all_lanes(after=after, count=count)
    return [standing_of(row) for row in rows]


def history(of: Lane | SessionId, count: int) -> Transaction[list[Binding]]:
    """The bindings that a lane or a session has had, newest first."""
    if isinstance(of, Lane):
        rows = yield q.lane_history(lane=(yield from now(of)).key, count=count)
    else:
        rows = yield q.session_history(session=of, count=count)
    return [binding_of(row) for row in rows]


def own(session: SessionId, owner: PersonId) -> Transaction[Session]:
    """One of a person's own sessions."""
    owner = yield from actors.now(owner)
    rows = yield q.session(session=session)
    if not rows or rows[0][1] != owner:
        raise Refused(Refusal.NOT_FOUND)
    return session_of(rows[0])


def owned(owner: PersonId, count: int, before: Session | None, since: Moment) -> Transaction[list[Session]]:
    """A person's sessions in which anything was said, last used first, from the one after `before`."""
    owner = yield from actors.now(owner)
    used, id = (before.used, before.id) if before else (_EVER, "")
    rows = yield q.sessions_of_owner(owner=owner, before=used, id=id, since=since, count=count)
    return [session_of(row) for row in rows]


def here(lane: Lane, count: int) -> Transaction[list[Session]]:
    """The open sessions that a lane has spoken to, the newest of them, in the order in which they came."""
    rows = yield q.sessions_of_lane(lane=(yield from now(lane)).key, count=count)
    return [session_of(row) for row in reversed(rows)]


def began_in(session: SessionId) -> Transaction[Lane | None]:
    """The lane that a session was begun in."""
    rows = yield q.session(session=session)
    return Lane.parse(rows[0][11]) if rows and rows[0][11] is not None else None


def spoken_to(lane: Lane, session: SessionId) -> Transaction[bool]:
    """Whether a lane speaks to a session or has: whoever reads there has read it."""
    return bool((yield q.been_here(lane=(yield from now(lane)).key, session=session)))


def branches(session: SessionId) -> Transaction[list[Session]]:
    """The sessions that were forked or spawned from one."""
    rows = yield q.branches(session=session)
    return [session_of(row) for row in rows]


def children(parent: SessionId) -> Transaction[list[Session]]:
    """The live children that a session has spawned, those with a label first."""
    rows = yield q.children(session=parent, most=_MOST)
    found = []
    for child, _ in rows:
        [row] = yield q.session(session=child)
        found.append(session_of(row))
    return found


def child(parent: SessionId, label: str) -> Transaction[SessionId]:
    """The live child of a session that goes by a label."""
    rows = yield q.child(parent=parent, label=label)
    if not label or not rows:
        raise Refused(Refusal.NOT_FOUND)
    return SessionId(rows[0][0])


def keep_list(lane: Lane, person: PersonId, kind: str, ids: Sequence[str], at: Moment) -> Transaction[None]:
    """Remember the list that a person is shown."""
    person = yield from actors.hold(person)
    text = msgspec.json.encode(ids).decode()
    yield q.keep_list(lane=(yield from now(lane)).key, person=person, kind=kind, sessions=text, at=at)


def line(lane: Lane, person: PersonId, kind: str, number: int) -> Transaction[SessionId]:
    """The session on a line of the list that the person was shown last."""
    key = (yield from now(lane)).key
    rows = yield q.kept_list(lane=key, person=(yield from actors.now(person)), kind=kind)
    shown = msgspec.json.decode(rows[0][0], type=list[str]) if rows else []
    if not 1 <= number <= len(shown):
        raise Refused(Refusal.NOT_LISTED)
    return SessionId(shown[number - 1])


def entries_since(session: SessionId, n: int, count: int) -> Transaction[list[Entry]]:
    """What a session wrote after its n-th entry, on whichever branch."""
    rows = yield q.entries_since(session=session, n=n, count=count)
    return [entry_of(row) for row in rows]
