"""Children: the sessions that agents start, write to, read and close, each time under the claim of the turn that asks.

Law: what a turn asks for is kept under its call's key, so a turn that is tried again finds what it asked for first. A
person's agent reaches that person's sessions: somebody else's are as if they weren't there.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from segue.changes.exchange import routes, turns
from segue.changes.people import actors
from segue.changes.places import addresses
from segue.changes.sessions import moves
from segue.core.contracts.database import Row, Transaction
from segue.core.lanes import Address, Kind, Place, Rules
from segue.core.messages import Parts, Text, decode_parts, plain_text
from segue.core.moves import Actor, Limits, Spawn
from segue.core.titles import Title
from segue.core.transcripts import Ending, Role
from segue.core.turns import Ask, Asked, Claim, Outcome, Owed, Reply, TurnKind
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q
from segue.errors import Refusal, Refused

CLOSED = "It was closed before it finished its task."
_WRITTEN = 3
_WAITS = "waits"


class Asker(Value, frozen=True):
    """A running turn whose agent asks something of other sessions."""

    held: Claim
    turn: int
    person: PersonId
    name: str
    home: str
    """Where that goes which has no lane to go to."""
    cause: str
    """The turn that all of it comes of: this one, unless an agent asked for it."""
    trace: str

    @property
    def session(self) -> SessionId:
        """The session that the turn is of."""
        return self.held.session


class Child(Value, frozen=True):
    """A session that another one started."""

    id: SessionId
    label: str
    ending: Ending
    closed: bool
    busy: bool
    used: Moment
    title: str
    lane: str | None
    """The lane that it was given when it began."""


class Waiting(Enum):
    """How it stands with an answer that somebody waits for, as long as there is none."""

    ON = "it isn't there, and there is time left"
    OVER = "the time is over: it will be delivered, or was"


class Answer(Value, frozen=True):
    """A turn's answer, taken by whoever waited for it."""

    outcome: Outcome
    text: str
    entry: int


class Unreceived(Value, frozen=True):
    """An answer that was kept for a turn which ended without taking it."""

    session: SessionId
    turn: int
    route: str
    answer: Answer


def known(call: str) -> Transaction[Asked | None]:
    """What a call asked for when it was first made."""
    rows = yield q.turn_of_call(call=call)
    return Asked(*rows[0]) if rows else None


def child(session: SessionId) -> Transaction[Child]:
    """A session that another one started."""
    [row] = yield q.standing(session=session)
    _, closed, ending, label, _, _, busy, origin = row
    return Child(session, label, Ending(ending), closed is not None, bool(busy), 0.0, "", origin)


def opening(asker: Asker) -> Transaction[Place | None]:
    """The place at which a thread would be opened for the turn that asks; None if it is spoken to from nowhere."""
    _, route = yield from routes.now(asker.session, (asker.session, asker.turn), asker.home)
    if not route:
        return None
    address = Address.parse(route)
    rows = yield q.address(address=route)
    return Place(address, Kind(rows[0][0]) if rows else Kind.DM, rows[0][1] if rows else "")


def check(asker: Asker, move: Spawn, limits: Limits) -> Transaction[None]:
    """Raise `Refused` if a child can't be started now."""
    [(owner, *_)] = yield q.standing(session=asker.session)
    if owner != (yield from actors.now(asker.person)):
        raise Refused(Refusal.OWNER_STARTS)
    yield from moves.check(move, Actor(asker.person), limits)
    yield from _within_budget(asker, limits)


def spawn(
    asker: Asker,
    call: str,
    move: Spawn,
    task: str,
    thread: Place | None,
    rules: Rules,
    limits: Limits,
    ids: tuple[str, str],
    at: Moment,
) -> Transaction[Child]:
    """Start a child and give it its task, with a thread of its own if one was opened."""
    before = yield from known(call)
    if before is not None:
        return (yield from child(before.session))
    lane = (yield from addresses.lane(thread, (), asker.person, rules, ids[0], at)) if thread else None
    spawned = Spawn(move.parent, move.session, move.label, lane, move.start, move.ending)
    yield from moves.make(spawned, Actor(asker.person), limits, ids[1], at)
    yield from turns.check(asker.held)
    yield from _spend_budget(asker, limits)
    if lane is not None:
        route = lane.address.key
    elif move.ending is Ending.ONE_SHOT:
        route = ""
    else:
        _, route = yield from routes.now(asker.session, (asker.session, asker.turn), asker.home)
    yield from turns.ask(_ask(asker, move.session, call, task, lane.key if lane else None, route), at)
    return (yield from child(move.session))


def find(asker: Asker, label: str, session: str) -> Transaction[SessionId]:
    """The session that an agent names: a live child by its label, or any of its person's own by its id."""
    if label:
        rows = yield q.child(parent=asker.session, label=label)
        session = rows[0][0] if rows else ""
    person = yield from actors.now(asker.person)
    found = yield q.standing(session=session)
    if not found or found[0][0] != person:
        raise Refused(Refusal.NOT_FOUND)
    return SessionId(session)


def send(
    asker: Asker, call: str, to: SessionId, message: str, wait: float | None, limits: Limits, at: Moment
) -> Transaction[Asked]:
    """Write to another session, unless it waits for an answer of the one that writes."""
    before = yield from known(call)
    if before is not None:
        return before
    if wait is not None:
        # Two who begin to wait at once could close a ring that neither of them sees.
        yield q.hold_name(name=_WAITS)
    for session in sorted({asker.session, to}):
        yield q.lock_session(session=session)
    yield from turns.check(asker.held)
    yield from find(asker, "", to)
    [(_, closed, ending, _, parent, depth, _, _)] = yield q.standing(session=to)
    if to == asker.session:
        raise Refused(Refusal.TO_ITSELF)
    if closed is not None:
        raise Refused(Refusal.CLOSED)
    if ending == Ending.ONE_SHOT:
        raise Refused(Refusal.ONE_TASK)
    if (yield from _waits_for(to, asker.session)):
        raise Refused(Refusal.WAITS_FOR_YOU)
    yield from _spend_budget(asker, limits)
    _, route = yield from routes.now(asker.session, (asker.session, asker.turn), asker.home)
    if not (depth and parent == asker.session):
        # A child knows that its parent speaks to it; anybody else must be told who does.
        message = f"From {(yield from _named(asker.session, to))}:\n\n{message}"
    return (yield from turns.ask(_ask(asker, to, call, message, None, route, wait), at))


def receive(session: SessionId, turn: int, at: Moment) -> Transaction[Answer | Waiting]:
    """Take the answer that one waits for, or find that the time is over; from then on it is delivered instead."""
    yield q.lock_session(session=session)
    [(outcome, awaited, _, left)] = yield q.answer_of(session=session, seq=turn)
    if outcome is None:
        if awaited is not None and left:
            return Waiting.ON
        yield q.end_wait(session=session, seq=turn)
        return Waiting.OVER
    if outcome == Outcome.WITHDRAWN:
        return Answer(Outcome.WITHDRAWN, "", 0)
    if awaited is None:
        return Waiting.OVER
    yield q.receive(session=session, seq=turn, at=at)
    return (yield from _answer(session, turn, Outcome(outcome)))


def waited(session: SessionId, turn: int) -> Transaction[Waiting | None]:
    """Whether there is nothing new about an answer that somebody waits for."""
    [(outcome, awaited, _, left)] = yield q.answer_of(session=session, seq=turn)
    return Waiting.ON if outcome is None and awaited is not None and left else None


def unreceived(count: int) -> Transaction[list[Unreceived]]:
    """Answers that were kept for turns which ended without taking them."""
    rows = yield q.unreceived(count=count)
    found = []
    for session, turn, route in rows:
        [(outcome, *_)] = yield q.answer_of(session=session, seq=turn)
        answer = yield from _answer(session, turn, Outcome(outcome))
        found.append(Unreceived(session, turn, route, answer))
    return found


def deliver(session: SessionId, turn: int, replies: Sequence[Reply], at: Moment) -> Transaction[None]:
    """Deliver an answer that nobody takes any more, once."""
    yield q.lock_session(session=session)
    [(_, awaited, received, _)] = yield q.answer_of(session=session, seq=turn)
    if awaited is None or received is not None:
        return
    yield q.receive(session=session, seq=turn, at=at)
    yield from turns.reply(session, turn, 0, tuple(replies), at)


def close(asker: Asker, session: SessionId, id: str, at: Moment) -> Transaction[Child]:
    """Close a session that this one started, or one that such a one did; what runs in it is stopped."""
    if session == asker.session:
        raise Refused(Refusal.TO_ITSELF)
    rows = yield q.forebears(session=session)
    if (asker.session,) not in [tuple(row) for row in rows]:
        raise Refused(Refusal.NOT_ITS_CHILD)
    [(_, closed, ending, label, parent, _, _, _)] = yield q.standing(session=session)
    if closed is None:
        actor = Actor(asker.person)
        yield from moves.close(session, actor, id, at, moves.AtWork.STOPPED, (asker.session, SessionId(parent)))
        yield from turns.check(asker.held)
        if ending == Ending.ONE_SHOT and parent != asker.session:
            owed = Owed(SessionId(parent), CLOSED, asker.person, asker.home, asker.cause, asker.trace)
            yield from turns.tell_parent(session, 1, label, owed, at)
    return (yield from child(session))


def children(asker: Asker, count: int) -> Transaction[list[Child]]:
    """What a session has started, if it is the person's own: what is open first, the newest first."""
    rows = yield q.spawned(session=asker.session, owner=(yield from actors.now(asker.person)), count=count)
    return [_child(row) for row in rows]


def _child(row: Row) -> Child:
    id, label, ending, closed, busy, used, name, number, origin = row
    title = str(Title(name, number)) if name is not None else ""
    return Child(id, label, Ending(ending), closed is not None, bool(busy), used, title, origin)


def _ask(
    asker: Asker, to: SessionId, call: str, words: str, lane: str | None, route: str, wait: float | None = None
) -> Ask:
    parts: Parts = (Text(words),)
    return Ask(
        to,
        TurnKind.SENT,
        call,
        parts,
        asker.person,
        asker.name,
        lane,
        route,
        asker.trace,
        by=asker.session,
        by_turn=asker.turn,
        cause=asker.cause,
        wait=wait,
    )


def _within_budget(asker: Asker, limits: Limits) -> Transaction[None]:
    """Refuse what would be one turn too many of all that comes of one message, so that no two agents talk for ever."""
    [(caused,)] = yield q.caused(cause=asker.cause, most=limits.budget)
    if caused >= limits.budget:
        raise Refused(Refusal.OVER_BUDGET)


def _spend_budget(asker: Asker, limits: Limits) -> Transaction[None]:
    """The same for who asks for a turn now: of sessions that share a budget, each counts after the other."""
    # Held last: whoever holds it waits for nothing more.
    yield q.hold_name(name=f"budget of {asker.cause}")
    yield from _within_budget(asker, limits)


def _waits_for(one: SessionId, other: SessionId) -> Transaction[bool]:
    """Whether a session waits for another's answer, or for one that does."""
    seen, left = {one}, [one]
    while left:
        rows = yield q.waits_for(session=left.pop())
        for (session,) in rows:
            if session == other:
                return True
            if session not in seen:
                seen.add(session)
                left.append(session)
    return False


def _named(session: SessionId, towards: SessionId) -> Transaction[str]:
    """What a session is to another one."""
    [(_, _, _, label, parent, depth, _, _)] = yield q.standing(session=session)
    kind = "your child session" if depth and parent == towards else "another session,"
    return f"{kind} “{label}” ({session})" if label else f"{kind} {session}"


def _answer(session: SessionId, turn: int, outcome: Outcome) -> Transaction[Answer]:
    """What a turn said: the agent's words, or the gateway's where it failed."""
    rows = yield q.written_by(session=session, turn=turn, count=_WRITTEN)
    role = Role.GATEWAY if outcome is Outcome.FAILED else Role.AGENT
    n, parts = next(((n, parts) for n, by, parts in rows if by == role), (0, "[]"))
    return Answer(outcome, plain_text(decode_parts(parts)).strip(), n)
