"""Readers: what may be shown to whoever reads an answer.

Law: a reader who is alone sees all that is theirs. Where others read, lists, searches and tools show only what was said
or made there, and reach a session only as far as everyone there has read it. All of them ask here.
"""

from collections.abc import Collection, Iterable
from typing import TypeVar

from segue.changes.exchange.schedules import Schedule
from segue.changes.people import actors
from segue.changes.places import lanes
from segue.changes.rows import each, first
from segue.changes.sessions import readings, titles, transcripts
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Audience, Lane, Place
from segue.core.transcripts import Entry, Session
from segue.core.values import PersonId, SessionId, Value
from segue.database.statements import q

T = TypeVar("T", Session, Entry, Schedule)


class Reader(Value, frozen=True):
    """Whoever reads an answer: its person alone, or everyone in some places."""

    places: tuple[Address, ...] = ()
    """The places that others read; none if its person is alone."""


class TurnKey(Value, frozen=True):
    """A turn, by its session and its number there."""

    session: SessionId
    turn: int

    @property
    def keys(self) -> dict[str, str | int]:
        """The turn as queries name it."""
        return {"session": self.session, "turn": self.turn}


class Beside(Value, frozen=True):
    """Another turn of a session that runs or waits, and who asked for it."""

    turn: int
    person: PersonId


def of_turn(session: SessionId, turn: int, person: PersonId) -> Transaction[Reader]:
    """The readers of what a turn says and its tools find: where it was asked, is answered, and its session is read.

    What another session asked for is told there, so whoever reads that one is among them. Whoever waits for a later
    answer of one of these sessions is, too, though they have left it: that one goes on from this.
    """
    person = yield from actors.now(person)
    places: list[Address] = []
    heard, alone, looked_at = [TurnKey(session, turn)], {TurnKey(session, turn): True}, set[SessionId]()
    for by in heard:
        places += yield from _told_in(by, alone=alone[by])
        more = dict.fromkeys((yield from each(TurnKey, q.asking_turns(**by.keys))), alone[by])
        if by.session not in looked_at:
            looked_at.add(by.session)
            places += yield from readings.others(by.session, person)
            for beside in (yield from each(Beside, q.turns_beside(**by.keys))):
                more[TurnKey(by.session, beside.turn)] = (yield from actors.now(beside.person)) == person
        heard += [asked for asked in more if asked not in alone]
        alone = more | alone
    return Reader(tuple(dict.fromkeys(places)))


def hosts_own(
    session: SessionId, turn: int, lane: str | None, person: PersonId, identity: str, hosts: Collection[str]
) -> Transaction[bool]:
    """Whether the host asked for a turn in a lane as one of these identities, and nobody else reads what it says."""
    if lane is None or identity not in hosts:
        return False
    return not (yield from of_turn(session, turn, person)).places


def _told_in(by: TurnKey, *, alone: bool) -> Transaction[list[Address]]:
    """The places in which a turn was asked for and is answered; private ones only if others asked there."""
    asking = yield from first(Lane, q.asking_lane(**by.keys))
    heard = [(yield from lanes.now(asking)).address.key] if asking else []
    heard += yield from each(str, q.route_of_turn(**by.keys))
    places: list[Address] = []
    for address in filter(None, heard):
        place = yield from first(Place, q.address(address=address))
        places += [place.address] if place is not None and not (alone and place.audience is Audience.ONE) else []
    return places


def sees(reader: Reader, what: Session | Entry | Schedule) -> Transaction[bool]:
    """Whether somebody's own session, entry or scheduled work may be shown to a reader."""
    if isinstance(what, Session):
        return (yield from knows(reader, what.id))
    for place in reader.places:
        if place != (yield from _said_in(what)) or (yield q.left_by_place(session=_session(what), address=place.key)):
            return False
    return True


def knows(reader: Reader, session: SessionId) -> Transaction[bool]:
    """Whether a session was spoken to where a reader is, or made for them."""
    for place in reader.places:
        been = bool((yield q.been_there(address=place.key, session=session)))
        if not been and not (yield from readings.made_for(place, session)):
            return False
    return True


def seen(reader: Reader, found: Iterable[T]) -> Transaction[list[T]]:
    """The part of what was found that may be shown to a reader."""
    shown: list[T] = []
    for what in found:
        shown += [what] if (yield from sees(reader, what)) else []
    return shown


def whole(reader: Reader, session: SessionId) -> Transaction[bool]:
    """Whether a reader has read all of a session."""
    for place in reader.places:
        if not (yield from readings.whole(place, session)):
            return False
    return True


def path(reader: Reader, session: Session) -> Transaction[list[Entry]]:
    """The transcript of a session, as far as a reader has read it."""
    entries = yield from transcripts.path(session.tip)
    for place in reader.places:
        left = yield from readings.since(place, entries[-1].tip if entries else None)
        if left.entries and not (yield from readings.made_for(place, session.id)):
            entries = entries[: -left.entries]
    return entries


def title(reader: Reader, session: SessionId) -> Transaction[str]:
    """The title of a session before a reader; empty if it has none, or got it when they had left."""
    found = yield from titles.of(session)
    for place in reader.places:
        found = yield from titles.of_at(session, place)
    return str(found) if found else ""


def _session(what: Entry | Schedule) -> SessionId:
    return what.session if isinstance(what, Schedule) else what.tip.session


def _said_in(what: Entry | Schedule) -> Transaction[Address | None]:
    """The place in which something was said, or scheduled."""
    if isinstance(what, Schedule):
        where = Lane.parse(what.lane).address.key if what.lane else ""
    else:
        tip, where = what.tip, what.source.address
        where = where or (yield from first(str, q.route_of_turn(session=tip.session, turn=what.turn))) or ""
    return (yield from lanes.settled(Lane(Address.parse(where)))).address if where else None
