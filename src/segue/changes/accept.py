"""Arrivals: one transaction from a message as it came in to a turn that waits for its session."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from segue.changes.exchange import deliveries, turns
from segue.changes.people import actors, persons
from segue.changes.people.persons import Met
from segue.changes.places import addresses
from segue.changes.sessions import moves, resets, transcripts
from segue.core.contracts.database import Row, Transaction
from segue.core.lanes import Address, Kind, Lane, Person, Place, Sharing, account_key, clean_place, lane_of
from segue.core.messages import Arrival, Aside, Notice, Parts, Telling, encode_parts
from segue.core.moves import Actor, Consent, Fork, Renew, Why
from segue.core.prompt.section import RESET, first_words
from segue.core.resets import Due, due, notice
from segue.core.settings import DmThreads, Settings
from segue.core.transcripts import GATEWAY, Author, Draft, Role, Source, Tip
from segue.core.turns import Ask, Claim, Run, Turn, TurnKind
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q
from segue.database.transactions import Moved
from segue.errors import Refused

KEPT = 8 * 86400.0
"""Seconds for which a redelivery is known: a day more than the most patient platform tries."""


class Fresh(Value, frozen=True):
    """Ids that an arrival may need, made before its transaction so that it can run again."""

    person: PersonId
    session: SessionId
    move: str
    merges: tuple[str, ...]
    """One for the chat, then one for each alias of the person."""


class Duplicate(Value, frozen=True):
    """The same message came before; it is safe to acknowledge."""


class Letter(Value, frozen=True):
    """An arrival that couldn't be understood, as it came, and why."""

    id: int
    account: str
    raw: str
    why: str
    at: Moment


class Handled(Value, frozen=True):
    """An arrival that became no turn: a command, an edit, or one that was refused."""

    why: str


class Queued(Value, frozen=True):
    """An arrival became a turn."""

    session: SessionId
    turn: int
    lane: Lane
    met: Met
    reset: Due | None = None
    run: Run | None = None
    """What is to be run now, if the session was idle and is held by this replica since."""


class Via(StrEnum):
    """How a message comes to the session that it is asked of."""

    BINDING = "binding"
    """Its lane speaks to it."""
    QUOTE = "quote"
    """It answers a message of it; its lane has spoken to it before and goes on as it is."""


class Instead(Value, frozen=True):
    """Something else is to be asked than what came in: a command brought words for the agent, or a turn of its own."""

    parts: Parts
    kind: TurnKind = TurnKind.ARRIVAL
    session: SessionId | None = None
    """The session that it is asked of; None is the one that the lane speaks to by now, begun if need be."""
    via: Via = Via.BINDING
    lane: Lane | None = None
    """The lane that speaks to that session, if it isn't the one that the arrival came in; it is answered there."""


Gate = Callable[[Arrival, Met, Lane], Transaction[Handled | Instead | None]]
"""Looks at an arrival before its session is: it may be refused, or be a command."""


def open_gate(_arrival: Arrival, _met: Met, _lane: Lane) -> Transaction[Handled | Instead | None]:
    """Let everything pass."""
    yield from ()
    return None


def accept(
    arrival: Arrival,
    settings: Settings,
    fresh: Fresh,
    me: str | None,
    trace: str,
    at: Moment,
    gate: Gate = open_gate,
) -> Transaction[Queued | Handled | Duplicate]:
    """Take one message in, exactly once: who is it, may they, which lane, which session, and the turn it waits in.

    If the session is idle and `me` is given, that replica holds it when this returns.
    """
    if not (yield from _see(arrival, at)):
        return Duplicate()
    yield from addresses.expect(arrival.place, arrival.chat_aliases)
    met = yield from persons.meet(arrival.speaker, fresh.person, fresh.merges[1:], at)
    lane, place, row = yield from _locate(arrival, settings, fresh, met.person, at)
    passed = yield from gate(arrival, met, lane)
    if isinstance(passed, Handled):
        return passed
    if isinstance(passed, Instead):
        arrival = msgspec.structs.replace(arrival, parts=passed.parts)
        if passed.session is not None:
            speaks, here = passed.lane or lane, lane.address.key
            return (
                yield from _queue(
                    arrival, passed.session, speaks, met, None, me, trace, at, passed.kind, passed.via, here
                )
            )
        lane, row = yield from _look(place, settings, _who(arrival, met.person))
    if arrival.edits and (edited := (yield from _edit(arrival, place, met.person, fresh.move, at))):
        return edited
    session, reset = yield from _session(arrival, lane, place, row, settings, fresh, met.person, at)
    return (yield from _queue(arrival, session, lane, met, reset, me, trace, at))


def give_up(arrival: Arrival, why: str, told: str, key: str, at: Moment) -> Transaction[bool]:
    """Make a dead letter of an arrival, and tell its person; returns whether it is new, and it isn't any more."""
    if not (yield from _see(arrival, at)):
        return False
    address = arrival.place.address
    yield from bury(account_key(address.platform, address.account), ascii(arrival), why, at)
    if arrival.parts:
        yield from deliveries.notify(address, told, key, (arrival.message,), at)
    return True


def bury(account: str, raw: str, why: str, at: Moment) -> Transaction[None]:
    """Keep an arrival that couldn't be understood, as it came."""
    yield q.add_letter(account=account, raw=raw, why=why, at=at)


def letters(count: int) -> Transaction[list[Letter]]:
    """The arrivals that couldn't be understood, the newest first."""
    rows = yield q.letters(count=count)
    return [Letter(*row) for row in rows]


def forget(at: Moment) -> Transaction[None]:
    """Forget keys that no platform redelivers any more."""
    yield q.forget_seen(before=at - KEPT, count=1000)


def _see(arrival: Arrival, at: Moment) -> Transaction[bool]:
    """Remember an arrival by its keys; returns whether it is new."""
    account, new = account_key(arrival.place.address.platform, arrival.place.address.account), True
    for key in sorted(arrival.keys):
        new = bool((yield q.see(account=account, key=key, at=at))) and new
    return new


def _locate(
    arrival: Arrival, settings: Settings, fresh: Fresh, person: Person, at: Moment
) -> Transaction[tuple[Lane, Place, Row | None]]:
    """The lane and the place of an arrival, under the ids first known for them, and what the lane speaks to."""
    place, who = arrival.place, _who(arrival, person)
    lane, row = yield from _look(place, settings, who)
    if row is None or row[0] is None or arrival.chat_aliases:
        # Only a lane that isn't known can be another id of one that is. A person is held before a chat, as everywhere.
        yield from _still(person)
        place = yield from addresses.settle(place, arrival.chat_aliases, person.id, fresh.merges[0], at)
        lane, row = yield from _look(place, settings, who)
    if arrival.topic is Telling.ONCE:
        place = yield from addresses.as_known(place)
    if row is None or _described(row) != (place.kind, place.name, place.topic):
        place = clean_place(place)
        if row is None or _described(row) != (place.kind, place.name, place.topic):
            yield from moves.see(place, lane.person, at)
    return lane, place, row


def _described(row: Row) -> tuple[Kind, str, str]:
    """What is known about the place of a lane."""
    return Kind(row[4]), row[5], row[6]


def _who(arrival: Arrival, person: Person) -> str:
    """Whom a lane may be keyed by: nobody, if the platform doesn't say who it was."""
    return person.id if any((arrival.speaker.identity.user, *arrival.speaker.aliases)) else ""


def _look(place: Place, settings: Settings, who: str) -> Transaction[tuple[Lane, Row | None]]:
    apart = place.address.thread and settings.rules.threads is Sharing.APART
    if apart and (yield from addresses.opened(place.address)):
        place = Place(place.address, place.kind, place.name, place.topic, opened=True)
    lane = lane_of(place, who, settings.rules)
    rows = yield q.bound(lane=lane.key)
    return lane, rows[0] if rows else None


def _session(
    arrival: Arrival,
    lane: Lane,
    place: Place,
    row: Row | None,
    settings: Settings,
    fresh: Fresh,
    person: Person,
    at: Moment,
) -> Transaction[tuple[SessionId, Due | None]]:
    """The session that a lane speaks to; a new one if it had none or a reset is due."""
    actor = Actor(person.id)
    if row is None or row[0] is None:
        yield from _unmoved(lane, None, person)
        move = yield from _first(lane, place, arrival, settings, fresh, person)
        yield from moves.make(move, actor, settings.limits, fresh.move, at)
        return fresh.session, None
    session, used, head, tail = row[:4]
    policy = settings.resets.of(lane, place.kind)
    # The last turn of a session that is over keeps nobody from starting over.
    over = due(policy, used, at) if head == tail or row[7] else None
    if over is None or (yield from resets.at_work(session, at)):
        return SessionId(session), None
    yield from _unmoved(lane, row, person)
    try:
        yield from moves.make(Renew(lane, fresh.session, Why(over.value)), actor, settings.limits, fresh.move, at)
    except Refused as refused:
        # A handoff that began meanwhile is no reason to refuse a message: look again.
        raise Moved from refused
    if policy.notice and (yield from transcripts.count_said(SessionId(session))):
        yield from deliveries.notify(lane.address, notice(policy, over), f"reset/{fresh.move}", (), at)
    return fresh.session, over


def _unmoved(lane: Lane, row: Row | None, person: Person) -> Transaction[None]:
    """Lock a lane that is to get a new session, unless a neighbour was first, or its person was merged meanwhile."""
    yield from _still(person)
    yield q.lock_lane(lane=lane.key)
    [now] = yield q.bound(lane=lane.key)
    if tuple(now[:4]) != (tuple(row[:4]) if row else (None, None, None, None)):
        raise Moved


def _still(person: Person) -> Transaction[None]:
    """Hold a person, unless they turned out to be somebody else meanwhile."""
    if (yield from actors.hold(person.id)) != person.id:
        raise Moved


def _first(
    lane: Lane, place: Place, arrival: Arrival, settings: Settings, fresh: Fresh, person: Person
) -> Transaction[Renew | Fork]:
    """How a lane begins: as a fork of the private chat's session if this is a thread there, else anew."""
    anew = Renew(lane, fresh.session, Why.FIRST)
    if place.kind is not Kind.DM or not place.address.thread or settings.dm_threads is DmThreads.FRESH:
        return anew
    if (yield q.lane_history(lane=lane.key, count=1)):
        return anew
    # What the root shows is known, also where the private chat speaks to nobody any more.
    root = yield from _shown(arrival, place)
    _, row = yield from _look(Place(place.address.outside, Kind.DM), settings, person.id)
    source = root.session if root else row[0] if row else None
    found = (yield q.session(session=source)) if source is not None else []
    if not found or found[0][1] != person.id:
        return anew
    return Fork(lane, SessionId(found[0][0]), fresh.session, at=root, consent=Consent.GIVEN)


def _shown(arrival: Arrival, place: Place) -> Transaction[Tip | None]:
    """The entry that a thread's root message shows, by its receipt."""
    for message in filter(None, (arrival.quotes, place.address.thread)):
        receipt = yield from deliveries.receipt(place.address.outside, message)
        if receipt is not None and receipt.entry:
            return Tip(SessionId(receipt.session), receipt.entry)
    return None


def _edit(arrival: Arrival, place: Place, person: Person, id: str, at: Moment) -> Transaction[Handled | None]:
    """An edit: it replaces text that still waits; later it is an entry of its own. None if the message isn't known."""
    edited = yield from _edited(arrival, place.address, person)
    if edited is None:
        return None
    session, seq = edited
    yield q.lock_session(session=session)
    if (yield q.replace_waiting(session=session, seq=seq, parts=encode_parts(arrival.parts))):
        return Handled("edited")
    parts = (Notice("edits what they said before:"), *arrival.parts)
    identity, here = arrival.speaker.identity.key, place.address.key
    if (yield q.turn_runs(session=session, seq=seq)):
        # What it changes isn't in the transcript yet.
        edit = Ask(session, TurnKind.EDIT, f"edit/{id}", parts, person.id, person.name, route=here, identity=identity)
        yield from turns.ask(edit, at)
    else:
        author = Author(Role.PERSON, person.id, person.name)
        yield from transcripts.append(session, [Draft(author, parts, Source(identity, here))], at)
    return Handled("edited later")


def edits_words(arrival: Arrival, lane: Lane, person: Person) -> Transaction[bool]:
    """Whether an edit changes what its person said to the agent; what else they wrote was a command, or for others."""
    edited = yield from _edited(arrival, lane.address, person)
    if edited is None:
        return False
    [turn] = yield q.traced_turn(session=edited[0], turn=edited[1])
    return TurnKind(turn[2]) is TurnKind.ARRIVAL


def _edited(arrival: Arrival, address: Address, person: Person) -> Transaction[tuple[SessionId, int] | None]:
    """The turn that an edited message became, under whichever id its chat had then."""
    rows = yield q.turn_of_message(message=arrival.edits, address=address.key, person=person.id)
    if not rows:
        aliases = yield q.aliases_of(address=address.outside.key)
        thread = address.key.removeprefix(address.outside.key)
        for (alias,) in aliases:
            there = f"{alias}{thread}"
            rows = rows or (yield q.turn_of_message(message=arrival.edits, address=there, person=person.id))
    return (SessionId(rows[0][0]), rows[0][1]) if rows else None


def _queue(
    arrival: Arrival,
    session: SessionId,
    lane: Lane,
    met: Met,
    reset: Due | None,
    me: str | None,
    trace: str,
    at: Moment,
    kind: TurnKind = TurnKind.ARRIVAL,
    via: Via = Via.BINDING,
    route: str = "",
) -> Transaction[Queued]:
    slot = yield from turns.enqueue(session, me, at)
    if slot is None:
        raise Moved
    seq = slot.seq
    person = met.person
    turn = Turn(
        session,
        seq,
        kind,
        lane.key,
        route or lane.address.key,
        person.id,
        person.name,
        arrival.message,
        arrival.quotes,
        arrival.parts,
        at,
        trace,
        arrival.speaker.identity.key,
    )
    # The session is locked now: if the lane still speaks to it, this message belongs here.
    row = _row(turn)
    if not (yield q.add_turn_from(**row) if via is Via.BINDING else q.add_turn_quoting(**row)):
        raise Moved
    # The session is held by now, and nothing is waited for after this: two first words of one person don't lock up.
    # A command is nothing that an agent hears.
    heard = met.heard or kind is not TurnKind.ARRIVAL or not (yield q.hear(person=person.id, at=at))
    met = Met(met.person, met.new, heard)
    tip = (yield from _tell(session, met, turn.identity, reset, at)) or slot.tip
    if me is None or slot.holder != me or slot.head + 1 != seq:
        return Queued(session, seq, lane, met, reset)
    return Queued(session, seq, lane, met, reset, Run(Claim(session, me, slot.epoch), (turn,), tip))


def _row(turn: Turn) -> dict[str, Any]:
    """A turn as the arrival's queries take it."""
    return {
        "session": turn.session,
        "seq": turn.seq,
        "kind": turn.kind,
        "lane": turn.lane,
        "route": turn.route,
        "person": turn.person,
        "identity": turn.identity,
        "name": turn.name,
        "message": turn.message,
        "quotes": turn.quotes,
        "parts": encode_parts(turn.parts),
        "at": turn.accepted,
        "trace": turn.trace,
    }


def _tell(session: SessionId, met: Met, identity: str, reset: Due | None, at: Moment) -> Transaction[Tip | None]:
    """Tell the agent, once, why it starts over and that it hears somebody for the first time ever."""
    asides = [Draft(GATEWAY, (Aside(RESET[reset]),))] if reset else []
    if not met.heard:
        # Whose name it tells: an id in it is hidden like that in their own messages.
        asides.append(Draft(GATEWAY, (Aside(first_words(met.person.name)),), Source(identity)))
    if not asides:
        return None
    return (yield from transcripts.append(session, asides, at))
