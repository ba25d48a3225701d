"""Sessions as people find them: what a lane speaks to, what a person owns, the lists they were shown."""

from collections.abc import Sequence

import msgspec

from segue.changes.people import actors
from segue.changes.places.lanes import now, speaks_to
from segue.changes.rows import each, first, one
from segue.core.bindings import Binding, LaneStanding
from segue.core.contracts.database import Transaction
from segue.core.lanes import Lane
from segue.core.transcripts import Entry, Session
from segue.core.values import Moment, PersonId, SessionId
from segue.database.statements import q
from segue.errors import Refusal, Refused

_EVER = 1e18
_DEEPEST = 2**31 - 1
_MOST = 1000
_CLOSED_AT_ONCE = 16


def bound(lane: Lane) -> Transaction[Session | None]:
    """The session that a lane speaks to."""
    session = yield from speaks_to((yield from now(lane)))
    return (yield from one(Session, q.session(session=session))) if session else None


def lanes(session: SessionId) -> Transaction[list[Lane]]:
    """The lanes that speak to a session now, the newest first."""
    return (yield from each(Lane, q.lanes_bound(session=session)))


def all_lanes(after: str, count: int) -> Transaction[list[LaneStanding]]:
    """Lanes by their keys, with what they speak to, from the one after this key on."""
    return (yield from each(LaneStanding, q.all_lanes(after=after, count=count)))


def history(of: Lane | SessionId, count: int) -> Transaction[list[Binding]]:
    """The bindings that a lane or a session has had, newest first."""
    if isinstance(of, Lane):
        return (yield from each(Binding, q.lane_history(lane=(yield from now(of)).key, count=count)))
    return (yield from each(Binding, q.session_history(session=of, count=count)))


def unused(person: PersonId, most: int) -> Transaction[list[SessionId]]:
    """A person's open sessions beyond so many, the longest unused last, but for those at work."""
    return (yield from each(SessionId, q.sessions_over(owner=person, most=most, count=_CLOSED_AT_ONCE)))


def own(session: SessionId, owner: PersonId) -> Transaction[Session]:
    """One of a person's own sessions."""
    owner = yield from actors.now(owner)
    found = yield from first(Session, q.session(session=session))
    if found is None or found.owner != owner:
        raise Refused(Refusal.NOT_FOUND)
    return found


def known(session: SessionId) -> Transaction[Session]:
    """A session, whoever's it is."""
    return (yield from one(Session, q.session(session=session)))


def exists(session: SessionId) -> Transaction[bool]:
    """Whether there is a session of this id, whoever's it is."""
    return bool((yield q.session(session=session)))


def owned(owner: PersonId, count: int, before: Session | None, since: Moment) -> Transaction[list[Session]]:
    """A person's sessions in which anything was said, last used first, from the one after `before`."""
    return (yield from _owned(owner, count, before, since, _DEEPEST))


def talks(owner: PersonId, count: int, before: Session | None, since: Moment) -> Transaction[list[Session]]:
    """The same of a person's own talk: children of sessions are in their parents' trees."""
    return (yield from _owned(owner, count, before, since, 0))


def _owned(
    owner: PersonId, count: int, before: Session | None, since: Moment, depth: int
) -> Transaction[list[Session]]:
    owner = yield from actors.now(owner)
    used, id = (before.used, before.id) if before else (_EVER, "")
    page = {"before": used, "id": id, "since": since, "count": count}
    return (yield from each(Session, q.sessions_of_owner(owner=owner, depth=depth, **page)))


def last_own(owner: PersonId) -> Transaction[Session | None]:
    """The session of a person's that they used last, of those that nobody else reads and that are nobody's child."""
    return (yield from first(Session, q.last_own(owner=(yield from actors.now(owner)))))


def here(lane: Lane, count: int) -> Transaction[list[Session]]:
    """The open sessions that a lane has spoken to, the newest of them, in the order in which they came."""
    newest_first = yield from each(Session, q.sessions_of_lane(lane=(yield from now(lane)).key, count=count))
    return newest_first[::-1]


def branches(session: SessionId) -> Transaction[list[Session]]:
    """The sessions that were forked or spawned from one."""
    return (yield from each(Session, q.branches(session=session)))


def children(parent: SessionId) -> Transaction[list[Session]]:
    """The live children that a session has spawned, those with a label first."""
    return (yield from each(Session, q.children(session=parent, most=_MOST)))


def child(parent: SessionId, label: str) -> Transaction[SessionId]:
    """The live child of a session that goes by a label."""
    found = (yield from first(SessionId, q.child(parent=parent, label=label))) if label else None
    if found is None:
        raise Refused(Refusal.NOT_FOUND)
    return found


def keep_list(lane: Lane, person: PersonId, kind: str, ids: Sequence[str], at: Moment) -> Transaction[None]:
    """Remember the list that a person is shown."""
    person = yield from actors.hold(person)
    text = msgspec.json.encode(ids).decode()
    yield q.keep_list(lane=(yield from now(lane)).key, person=person, kind=kind, sessions=text, at=at)


def line(lane: Lane, person: PersonId, kind: str, number: int) -> Transaction[SessionId]:
    """The session on a line of the list that the person was shown last."""
    key = (yield from now(lane)).key
    person = yield from actors.now(person)
    shown = (yield from first(tuple[str, ...], q.kept_list(lane=key, person=person, kind=kind))) or ()
    if not 1 <= number <= len(shown):
        raise Refused(Refusal.NOT_LISTED)
    return SessionId(shown[number - 1])


def entries_since(session: SessionId, n: int, count: int) -> Transaction[list[Entry]]:
    """The entries of a session after its n-th, on whichever branch."""
    return (yield from each(Entry, q.entries_since(session=session, n=n, count=count)))
