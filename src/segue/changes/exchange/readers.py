"""Readers: what may be shown to whoever reads an answer.

Law: a reader who is alone sees all that is theirs. Where others read, lists, searches and tools show only what was said
or made there, and reach a session only as far as everyone there has read it. All of them ask here.
"""

from collections.abc import Iterable
from typing import TypeVar

from segue.changes.exchange.schedules import Schedule
from segue.changes.places import lanes
from segue.changes.rows import each, first
from segue.changes.sessions import readings, titles, transcripts
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Lane
from segue.core.transcripts import Entry, Session
from segue.core.values import SessionId, Value
from segue.database.statements import q

T = TypeVar("T", Session, Entry, Schedule)


class Reader(Value, frozen=True):
    """Whoever reads an answer: its person alone, or everyone in some places."""

    places: tuple[Address, ...] = ()
    """The places that others read; none if its person is alone."""


def sees(reader: Reader, what: Session | Entry | Schedule) -> Transaction[bool]:
    """Whether somebody's own session, entry or scheduled work may be shown to a reader."""
    for place in reader.places:
        if isinstance(what, Session):
            been = bool((yield q.been_there(address=place.key, session=what.id)))
            seen = been or (yield from made_for(place, what.id))
        else:
            seen = place == (yield from _said_in(what))
        if not seen:
            return False
    return True


def seen(reader: Reader, found: Iterable[T]) -> Transaction[list[T]]:
    """What of all that was found may be shown to a reader."""
    shown: list[T] = []
    for what in found:
        shown += [what] if (yield from sees(reader, what)) else []
    return shown


def whole(reader: Reader, session: SessionId) -> Transaction[bool]:
    """Whether a reader has read all of a session."""
    for place in reader.places:
        if not ((yield from readings.whole(place, session)) or (yield from made_for(place, session))):
            return False
    return True


def made_for(place: Address, session: SessionId) -> Transaction[bool]:
    """Whether all that a session was ever asked was asked in one place: such is a child of a session there."""
    return (yield from each(str, q.askers(session=session))) == [place.key]


def path(reader: Reader, session: Session) -> Transaction[list[Entry]]:
    """What was said in a session, as far as a reader has read it."""
    entries = yield from transcripts.path(session.tip)
    for place in reader.places:
        left = yield from readings.since(place, entries[-1].tip if entries else None)
        if left.entries and not (yield from made_for(place, session.id)):
            entries = entries[: -left.entries]
    return entries


def title(reader: Reader, session: SessionId) -> Transaction[str]:
    """What a session is called before a reader; empty if it has no title, or got it when they had left."""
    found = yield from titles.of(session)
    for place in reader.places:
        found = yield from titles.of_at(session, place)
    return str(found) if found else ""


def _said_in(what: Entry | Schedule) -> Transaction[Address | None]:
    """The place in which something was said, or scheduled."""
    if isinstance(what, Schedule):
        where = Lane.parse(what.lane).address.key if what.lane else ""
    else:
        turn = q.route_of_turn(session=what.tip.session, turn=what.turn)
        where = what.source.address or (yield from first(str, turn)) or ""
    return (yield from lanes.settled(Lane(Address.parse(where)))).address if where else None
