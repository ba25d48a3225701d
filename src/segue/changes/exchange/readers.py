"""Readers: what may be shown in a place.

Law: lists, searches and tools show in a shared place only what was said or made there. All of them ask `sees`.
"""

from collections.abc import Iterable
from typing import TypeVar

from segue.changes.exchange.schedules import Schedule
from segue.changes.places import lanes
from segue.changes.rows import first
from segue.changes.sessions import sessions
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Lane
from segue.core.transcripts import Entry, Session
from segue.core.values import Value
from segue.database.statements import q

T = TypeVar("T", Session, Entry, Schedule)


class Reader(Value, frozen=True):
    """Whoever reads what is said in a lane."""

    lane: Lane
    alone: bool
    """It is one person, who may see all that is theirs."""


def sees(reader: Reader, what: Session | Entry | Schedule) -> Transaction[bool]:
    """Whether somebody's own session, entry or scheduled work may be shown to a reader."""
    if reader.alone:
        return True
    if isinstance(what, Session):
        return (yield from sessions.spoken_to(reader.lane, what.id))
    if isinstance(what, Schedule):
        where = Lane.parse(what.lane).address.key if what.lane else ""
    else:
        tip, source = what.tip, what.source.address
        where = source or (yield from first(str, q.route_of_turn(session=tip.session, turn=what.turn))) or ""
    if not where:
        return False
    there = yield from lanes.settled(Lane(Address.parse(where)))
    return there.address == (yield from lanes.settled(reader.lane)).address


def seen(reader: Reader, found: Iterable[T]) -> Transaction[list[T]]:
    """What of all that was found may be shown to a reader."""
    shown: list[T] = []
    for what in found:
        shown += [what] if (yield from sees(reader, what)) else []
    return shown
