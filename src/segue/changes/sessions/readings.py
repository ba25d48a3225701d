"""Readings: how far each place has read what was said.

Law: a place has read an entry if it lay on the path of a session while one of the place's lanes spoke to that. Whoever
has read an entry has read all that leads to it, so who has read where a session ends has read it whole.
"""

from __future__ import annotations

from segue.changes.rows import each, first, one
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Place
from segue.core.transcripts import Session, Tip
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q


class Unread(Value, frozen=True):
    """The part of a session that a place hasn't read."""

    entries: int = 0
    said: int = 0
    """How many of them people or the agent said, and what waits to be answered elsewhere."""


NOTHING = Unread()


class Through(Value, frozen=True):
    """A turn by way of which a child was asked: its session, and the last entry that it wrote, once it is over."""

    session: SessionId
    n: int | None


def unread(address: Address, session: SessionId) -> Transaction[Unread]:
    """How much of a session a place hasn't read; what was asked elsewhere and isn't answered counts."""
    place = address.key
    if (yield q.speaks_there(address=place, session=session)):
        return NOTHING
    known = yield from first(Session, q.session(session=session))
    before = yield from since(address, known.tip if known else None)
    if before != NOTHING and (yield from made_for(address, session)):
        return NOTHING
    waiting = yield from one(int, q.waits_elsewhere(address=place, session=session))
    return Unread(before.entries + waiting, before.said + waiting)


def since(address: Address, tip: Tip | None) -> Transaction[Unread]:
    """How much of what leads to an entry a place hasn't read."""
    if tip is None or (yield q.has_read(address=address.key, session=tip.session, n=tip.n)):
        return NOTHING
    return (yield from one(Unread, q.unread(address=address.key, session=tip.session, n=tip.n)))


def shared(session: SessionId) -> Transaction[list[Place]]:
    """The places that speak to a session and that many people read."""
    return (yield from each(Place, q.shared_places(session=session)))


def made_for(address: Address, session: SessionId, so_far: frozenset[SessionId] = frozenset()) -> Transaction[bool]:
    """Whether a session is a child, and all that it was ever asked came of what was asked in one place.

    What came by way of another session counts only if that was made for the place, too, or the place has read it so
    far: a result may come to a session in which something else was said meanwhile. `so_far` are those looked at.
    """
    if (yield from each(str, q.askers(session=session))) != [address.key]:
        return False
    so_far |= {session}
    for by in (yield from each(Through, q.asked_through(session=session))):
        if by.session in so_far or (yield from _has_read(address, by)):
            continue
        if not (yield from made_for(address, by.session, so_far)):
            return False
    return True


def _has_read(address: Address, by: Through) -> Transaction[bool]:
    """Whether a place has read a session up to a turn, or reads it while that runs."""
    if by.n is None:
        return bool((yield q.speaks_there(address=address.key, session=by.session)))
    return (yield from since(address, Tip(by.session, by.n))) == NOTHING


def others(session: SessionId, person: PersonId) -> Transaction[list[Address]]:
    """The places in which others than a person, who asks, read what a session says from now on."""
    return (yield from each(Address, q.readers_now(session=session, person=person)))


def missed(session: SessionId, person: PersonId, entry: Tip) -> Transaction[bool]:
    """Whether others than a person, who asks, read a session and haven't read an entry that it has left."""
    for place in (yield from others(session, person)):
        if (yield from since(place, entry)) != NOTHING:
            return True
    return False


def widened(session: SessionId, person: PersonId, at: Moment) -> Transaction[list[Address]]:
    """The places in which others than a person read a session now, and didn't at some time."""
    found: list[Address] = []
    for place in (yield from others(session, person)):
        found += [place] if (yield q.reads_since(session=session, address=place.key, at=at)) else []
    return found


def whole(address: Address, session: SessionId) -> Transaction[bool]:
    """Whether a place has read a session whole."""
    return (yield from unread(address, session)) == NOTHING
