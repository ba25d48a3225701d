"""Arrivals: one transaction from a message as it came in to a turn that waits for its session."""

from __future__ import annotations

from segue.core.contracts import Row, Transaction
from segue.core.lanes import Kind, Lane, Person, Place, Rules, Sharing, account_key, lane_of
from segue.core.messages import Arrival, encode_parts
from segue.core.moves import Actor, Consent, Fork, Limits, Renew, Why
from segue.core.resets import Due, Policies, due
from segue.core.transcripts import Tip
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.errors import Refusal, Refused
from segue.store import moves, persons, places
from segue.store.statements import q
from segue.store.transactions import Moved


class Settings(Value, frozen=True):
    """The host's settings that decide where an arrival goes."""

    rules: Rules = Rules()
    resets: Policies = Policies()
    limits: Limits = Limits()
    dm_threads: Sharing | None = None
    """None: a thread in a DM begins as a fork of the DM's session. APART: it begins fresh."""


class Fresh(Value, frozen=True):
    """Ids that an arrival may need, made before its transaction so that it can run again."""

    person: PersonId
    session: SessionId
    move: str
    merges: tuple[str, ...]


class Duplicate(Value, frozen=True):
    """The same message came before; it is safe to acknowledge."""


class Queued(Value, frozen=True):
    """An arrival became a turn."""

    session: SessionId
    turn: int
    lane: Lane
    person: Person
    new_person: bool
    reset: Due | None
    holder: str | None
    epoch: int
    head: int


def accept(
    arrival: Arrival, settings: Settings, fresh: Fresh, me: str | None, trace: str, at: Moment
) -> Transaction[Queued | Duplicate]:
    """Take one message in, exactly once: who is it, which lane, which session, and the turn it waits in.

    If the session is idle and `me` is given, that replica holds it when this returns.
    """
    account = account_key(arrival.place.address.platform, arrival.place.address.account)
    new = True
    for key in arrival.keys:
        new = bool((yield q.see(account=account, key=key, at=at))) and new
    if not new:
        return Duplicate()
    met = yield from persons.meet(arrival.speaker, fresh.person, fresh.merges[1:], at)
    lane, session, reset = yield from _find(arrival, settings, fresh, met.person, at)
    turn, holder, epoch, head = yield from _queue(arrival, session, lane, met.person, me, trace, at)
    yield q.name_seen(account=account, key=arrival.message, session=session, turn=turn)
    return Queued(session, turn, lane, met.person, met.new, reset, holder, epoch, head)


def _find(
    arrival: Arrival, settings: Settings, fresh: Fresh, person: Person, at: Moment
) -> Transaction[tuple[Lane, SessionId, Due | None]]:
    """The lane of an arrival and the session that it speaks to; a new one if it had none or a reset is due."""
    place = arrival.place
    lane, row = yield from _look(place, settings, person)
    if row is None or row[0] is None or arrival.chat_aliases:
        # Only a lane that isn't known can be another id of one that is.
        place = yield from places.settle(place, arrival.chat_aliases, person.id, fresh.merges[0], at)
        lane, row = yield from _look(place, settings, person)
    if row is None or (Kind(row[4]), row[5], row[6]) != (place.kind, place.name, place.topic):
        yield from moves.see(place, lane.person, at)
    if row is None or row[0] is None:
        session = yield from _open(lane, place, arrival, settings, fresh, person, at)
        return lane, session, None
    session, used, head, tail = row[:4]
    policy = settings.resets.of(lane, place.kind)
    over = due(policy, used, at) if head == tail else None
    if over is None or (yield q.children_at_work(session=session)):
        return lane, SessionId(session), None
    move = Renew(lane, fresh.session, Why(over.value))
    made = yield from moves.make(move, Actor(person.id), settings.limits, fresh.move, at)
    return lane, made.session or fresh.session, over


def _look(place: Place, settings: Settings, person: Person) -> Transaction[tuple[Lane, Row | None]]:
    if place.address.thread and settings.rules.threads is Sharing.APART and (yield from places.opened(place.address)):
        place = Place(place.address, place.kind, place.name, place.topic, opened=True)
    lane = lane_of(place, person.id, settings.rules)
    rows = yield q.bound(lane=lane.key)
    return lane, rows[0] if rows else None


def _open(
    lane: Lane, place: Place, arrival: Arrival, settings: Settings, fresh: Fresh, person: Person, at: Moment
) -> Transaction[SessionId]:
    """The first session of a lane: a fork of the DM's if this is a thread in a DM, else a new one."""
    actor = Actor(person.id)
    move: Renew | Fork = Renew(lane, fresh.session, Why.FIRST)
    if place.kind is Kind.DM and place.address.thread and settings.dm_threads is None:
        outside = lane_of(Place(place.address.outside, Kind.DM), person.id, settings.rules)
        rows = yield q.bound(lane=outside.key)
        history = yield q.lane_history(lane=lane.key, count=1)
        if rows and rows[0][0] is not None and not history:
            root = yield from _shown(arrival, place)
            move = Fork(lane, SessionId(rows[0][0]), fresh.session, at=root, consent=Consent.GIVEN)
    try:
        made = yield from moves.make(move, actor, settings.limits, fresh.move, at)
    except Refused as refused:
        # A neighbour was first with this lane: look again.
        if refused.why is Refusal.ALREADY_THERE:
            raise Moved from refused
        raise
    return made.session or fresh.session


def _shown(arrival: Arrival, place: Place) -> Transaction[Tip | None]:
    """The entry that a thread's root message shows, by its receipt."""
    for message in (arrival.quotes, place.address.thread):
        rows = yield q.receipt(message=message, address=place.address.outside.key)
        if rows and rows[0][3]:
            return Tip(SessionId(rows[0][2]), rows[0][3])
    return None


def _queue(
    arrival: Arrival, session: SessionId, lane: Lane, person: Person, me: str | None, trace: str, at: Moment
) -> Transaction[tuple[int, str | None, int, int]]:
    rows = yield q.enqueue(session=session, me=me, at=at)
    if not rows:
        raise Moved
    turn, holder, epoch, head = rows[0]
    # The session is locked now: if the lane still speaks to it, this message belongs here.
    added = yield q.add_turn_from(
        session=session,
        seq=turn,
        kind="arrival",
        lane=lane.key,
        route=lane.address.key,
        person=person.id,
        name=person.name,
        message=arrival.message,
        quotes=arrival.quotes,
        parts=encode_parts(arrival.parts),
        at=at,
        trace=trace,
    )
    if not added:
        raise Moved
    return turn, holder, epoch, head
