"""Children: the sessions that agents start, write to, read and close, each time under the claim of the turn that asks.

Law: what a turn asks for is kept under its call's key, so a turn that is tried again finds what it asked for first. A
person's agent reaches that person's sessions: somebody else's are as if they weren't there.
"""

from collections.abc import Sequence
from enum import Enum

from msgspec.structs import replace

from segue.changes.exchange import deliveries, readers, routes, turns
from segue.changes.exchange.readers import Reader
from segue.changes.exchange.turns import Addressee
from segue.changes.people import actors
from segue.changes.people.tokens import Still
from segue.changes.places import addresses
from segue.changes.rows import each, first, one
from segue.changes.sessions import moves, readings, sessions, titles
from segue.core.contracts.database import Transaction
from segue.core.contracts.wakes import Topic, Wake
from segue.core.lanes import Address, Place
from segue.core.messages import Parts, Sent, plain_text
from segue.core.moves import Begin, Limits, Spawn
from segue.core.people import Allowance
from segue.core.settings import Settings
from segue.core.text.notices import CLOSED, answered_by
from segue.core.transcripts import Ending, Entry, Role, Session
from segue.core.turns import Ask, Asked, Claim, Outcome, Owed, Reply, TurnKind
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q
from segue.errors import Refusal, Refused

_WRITTEN = 3
_WAITS = "waits"


class Program(Value, frozen=True):
    """A program that acts for a person."""

    identity: str
    """The key of the identity that its person speaks by then."""
    allowance: Allowance
    only: SessionId | None = None
    """The one session that it reaches; None for all of its person's."""


OUTSIDE = SessionId("")
"""The session of whoever asks in no turn."""


class Asker(Value, frozen=True):
    """A running turn whose agent asks something of other sessions; or a program that acts for a person, in no turn."""

    held: Claim | None
    """None for a program: each of its calls is a transaction of its own, under its key."""
    turn: int
    person: PersonId
    name: str
    cause: str
    """The turn that all of it comes of: this one, unless an agent asked for it."""
    trace: str
    program: Program | None = None
    """The program, if it is one."""
    agent: str | None = None
    """The agent that answers the turn, and the children that it starts."""

    @property
    def session(self) -> SessionId:
        """The session that the turn is of."""
        return self.held.session if self.held else OUTSIDE

    @property
    def only(self) -> SessionId | None:
        """The one session that a program reaches; None for all of its person's."""
        return self.program.only if self.program else None


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


class Awaited(Value, frozen=True):
    """A turn whose answer is kept for whoever asked, as it stands."""

    outcome: Outcome | None
    awaited: Moment | None
    """Until when they wait."""
    received: Moment | None
    left: bool
    """They still wait."""


class LeftBehind(Value, frozen=True):
    """A turn whose answer nobody took, and where it goes."""

    session: SessionId
    turn: int
    route: str
    outcome: Outcome


class Written(Value, frozen=True):
    """An entry that a turn wrote."""

    n: int
    role: Role
    parts: Parts


class Taken(Value, frozen=True):
    """A turn's answer, taken by whoever waited for it."""

    outcome: Outcome
    text: str
    entry: int


class Unreceived(Value, frozen=True):
    """An answer that was kept for a turn which ended without taking it."""

    session: SessionId
    turn: int
    route: str
    answer: Taken


def known(call: str) -> Transaction[Asked | None]:
    """The turn that a call asked for when it was first made."""
    return (yield from first(Asked, q.turn_of_call(call=call)))


def child(session: SessionId) -> Transaction[Child]:
    """A session that another one started."""
    return (yield from one(Child, q.started_session(session=session)))


def hold(asker: Asker) -> Transaction[None]:
    """Hold the session of the turn that asks, or raise `Fenced` if somebody else does."""
    if asker.held is not None:
        yield from turns.check(asker.held)


def hold_call(call: str) -> Transaction[None]:
    """Let the same call wait until this one is done: it finds what was made, and makes nothing."""
    yield q.hold_name(name=f"call {call}")


def opening(asker: Asker) -> Transaction[Place | None]:
    """The place at which a thread would be opened for the turn that asks; None if it is spoken to from nowhere."""
    _, route = yield from routes.now(asker.session, (asker.session, asker.turn))
    if not route:
        return None
    return (yield from first(Place, q.address(address=route))) or Place(Address.parse(route))


def allowed(asker: Asker, still: Still) -> Transaction[None]:
    """Raise `Refused` if the person of the turn may talk no more where the conversation is.

    Whether they may talk where they asked for the turn is looked at in each call of a tool.
    """
    place = yield from opening(asker)
    if (place is not None or asker.held is None) and not (yield from still(asker.person, place)):
        raise Refused(Refusal.NOT_ALLOWED)


def check(asker: Asker, move: Spawn, limits: Limits) -> Transaction[None]:
    """Raise `Refused` if a child can't be started now."""
    own = yield from one(Addressee, q.standing(session=asker.session))
    if own.owner != (yield from actors.now(asker.person)):
        raise Refused(Refusal.OWNER_STARTS)
    yield from moves.check(move, asker.person, limits)
    yield from _within_budget(asker, limits)


def spawn(
    asker: Asker,
    call: str,
    move: Spawn,
    task: str,
    thread: Place | None,
    routing: Settings,
    ids: tuple[str, str],
    at: Moment,
) -> Transaction[Child]:
    """Start a child and give it its task, with a thread of its own if one was opened."""
    before = yield from known(call)
    if before is not None:
        return (yield from child(before.session))
    lane = (yield from addresses.lane(thread, (), asker.person, routing.rules, ids[0], at)) if thread else None
    spawned = Spawn(move.parent, move.session, move.label, lane, move.start, move.ending)
    yield from moves.make(spawned, asker.person, routing.limits, ids[1], at)
    yield from hold(asker)
    if asker.agent is not None:
        yield q.name_agent(session=move.session, agent=asker.agent)
    yield from _spend_budget(asker, routing.limits)
    if lane is not None:
        route = lane.address.key
    elif move.ending is Ending.ONE_SHOT:
        route = ""
    else:
        _, route = yield from routes.now(asker.session, (asker.session, asker.turn))
    yield from turns.ask(_ask(asker, move.session, call, Sent(task), lane.key if lane else None, route), at)
    return (yield from child(move.session))


def begin(asker: Asker, call: str, session: SessionId, title: str, task: str, at: Moment) -> Transaction[SessionId]:
    """Begin a conversation of a person's by what a program says for them; nobody speaks to it from anywhere yet."""
    yield from hold_call(call)
    before = yield from known(call)
    if before is not None:
        return before.session
    person = yield from actors.hold(asker.person)
    yield from moves.begin(Begin(session, person, None, title=title), at)
    yield from _say(asker, session, call, task, "", at)
    return session


def _say(asker: Asker, to: SessionId, call: str, words: str, route: str, at: Moment) -> Transaction[Asked]:
    """Say something for a person, unless that is more than they may; it counts like what they say themselves."""
    asked = yield from turns.ask(_ask(asker, to, call, Sent(words, own=True), None, route), at)
    may = asker.program.allowance if asker.program else Allowance()
    if not (yield q.within(person=asker.person, messages=may.messages_a_minute, waiting=may.waiting)):
        raise Refused(Refusal.OVER_LIMIT)
    return asked


def find(asker: Asker, label: str, session: str) -> Transaction[SessionId]:
    """The session that is named: by an agent a live child by its label, by a program one with that title; or by id."""
    person = yield from actors.now(asker.person)
    if label and asker.held is None:
        session = (yield from titles.find(person, label)) or ""
    elif label:
        session = (yield from first(str, q.child(parent=asker.session, label=label))) or ""
    found = yield from first(Addressee, q.standing(session=session))
    id = SessionId(session)
    if asker.only not in (None, id):
        raise Refused(Refusal.NOT_FOUND)
    if found is None or found.owner != person or not (yield from readers.knows((yield from reader(asker)), id)):
        raise Refused(Refusal.NOT_FOUND)
    return id


def reader(asker: Asker) -> Transaction[Reader]:
    """The readers of what the turn says: what its tools find is bounded by them."""
    return (yield from readers.of_turn(asker.session, asker.turn, asker.person))


def _fits(asker: Asker, to: SessionId) -> Transaction[None]:
    """Refuse to write to a session unless all who read the answer have read it, and all who read it this one."""
    asking = yield from reader(asker)
    if not (yield from readers.whole(asking, to)):
        raise Refused(Refusal.NOT_FOUND)
    if asker.held is None and (yield from readings.others(to, (yield from actors.now(asker.person)))):
        raise Refused(Refusal.OTHERS_READ)
    chats = {place.outside for place in asking.places}
    for place in (yield from readings.others(to, (yield from actors.now(asker.person)))):
        # A thread that was opened for a child is read by those around it.
        if place.outside not in chats and not (yield from readings.whole(place, asker.session)):
            raise Refused(Refusal.OTHERS_READ)


def send(
    asker: Asker, call: str, to: SessionId, message: str, wait: float | None, limits: Limits, at: Moment
) -> Transaction[Asked]:
    """Write to another session, unless it waits for an answer of the one that writes."""
    before = yield from known(call)
    if before is not None:
        return before
    if wait is not None and asker.held is not None:
        # Two who begin to wait at once could close a ring that neither of them sees.
        yield q.hold_name(name=_WAITS)
    for session in sorted({asker.session, to} - {OUTSIDE}):
        yield q.lock_session(session=session)
    yield from hold(asker)
    yield from find(asker, "", to)
    yield from _fits(asker, to)
    addressee = yield from one(Addressee, q.standing(session=to))
    if to == asker.session:
        raise Refused(Refusal.TO_ITSELF)
    if addressee.closed:
        raise Refused(Refusal.CLOSED)
    if addressee.ending is Ending.ONE_SHOT:
        raise Refused(Refusal.ONE_TASK)
    if (yield from _waits_for(to, asker.session)):
        raise Refused(Refusal.WAITS_FOR_YOU)
    yield from _spend_budget(asker, limits)
    if asker.held is None:
        # Whoever waits gets the answer as the result, and nobody else is told.
        _, route = (yield from routes.newest(to)) if wait is None else (None, "")
        return (yield from _say(asker, to, call, message, route, at))
    _, route = yield from routes.now(asker.session, (asker.session, asker.turn))
    words = Sent(message)
    if not (addressee.depth and addressee.parent == asker.session):
        # A child knows that its parent speaks to it; anybody else must be told who does.
        sender = yield from one(Addressee, q.standing(session=asker.session))
        words = Sent(message, asker.session, sender.label, bool(sender.depth and sender.parent == to))
    return (yield from turns.ask(_ask(asker, to, call, words, None, route, wait), at))


def answered(session: SessionId, turn: int) -> Transaction[Taken | None]:
    """The answer of a turn, whoever took it; None as long as there is none."""
    kept = yield from one(Awaited, q.answer_of(session=session, seq=turn))
    return (yield from _answer(session, turn, kept.outcome)) if kept.outcome else None


def receive(session: SessionId, turn: int, at: Moment) -> Transaction[Taken | Waiting]:
    """Take the answer that one waits for, or find that the time is over; from then on it is delivered instead."""
    yield q.lock_session(session=session)
    kept = yield from one(Awaited, q.answer_of(session=session, seq=turn))
    if kept.outcome is None:
        if kept.left:
            return Waiting.ON
        yield q.end_wait(session=session, seq=turn)
        return Waiting.OVER
    if kept.outcome is Outcome.WITHDRAWN:
        return Taken(Outcome.WITHDRAWN, "", 0)
    if kept.awaited is None:
        return Waiting.OVER
    yield q.receive(session=session, seq=turn, at=at)
    return (yield from _answer(session, turn, kept.outcome))


def waited(session: SessionId, turn: int) -> Transaction[Waiting | None]:
    """Whether there is nothing new about an answer that somebody waits for."""
    kept = yield from one(Awaited, q.answer_of(session=session, seq=turn))
    return Waiting.ON if kept.outcome is None and kept.left else None


def unreceived(count: int) -> Transaction[list[Unreceived]]:
    """Answers that were kept for turns which ended without taking them."""
    found = []
    for left in (yield from each(LeftBehind, q.unreceived(count=count))):
        answer = yield from _answer(left.session, left.turn, left.outcome)
        found.append(Unreceived(left.session, left.turn, left.route, answer))
    return found


def deliver(session: SessionId, turn: int, replies: Sequence[Reply], at: Moment) -> Transaction[None]:
    """Deliver an answer that nobody takes any more, once."""
    yield q.lock_session(session=session)
    kept = yield from one(Awaited, q.answer_of(session=session, seq=turn))
    if kept.awaited is None or kept.received is not None:
        return
    yield q.receive(session=session, seq=turn, at=at)
    label = (yield from one(Addressee, q.standing(session=session))).label
    shown = turns.marked(tuple(replies), answered_by(label)) if label else tuple(replies)
    yield from deliveries.reply(session, turn, 0, shown, at)
    yield from deliveries.offer(shown)


def close(asker: Asker, session: SessionId, id: str, at: Moment) -> Transaction[Child]:
    """Close a session that this one started, or one that such a one did; what runs in it is stopped.

    A program closes any that its person could.
    """
    if session == asker.session:
        raise Refused(Refusal.TO_ITSELF)
    if asker.held is not None and asker.session not in (yield from each(SessionId, q.forebears(session=session))):
        raise Refused(Refusal.NOT_ITS_CHILD)
    found = yield from one(Addressee, q.standing(session=session))
    parent = found.parent or asker.session
    if not found.closed:
        actor = asker.person
        beside = [beside for beside in (asker.session, parent) if beside != OUTSIDE]
        yield from moves.close(session, actor, id, at, moves.AtWork.STOPPED, beside)
        yield from hold(asker)
        if found.ending is Ending.ONE_SHOT and parent != asker.session:
            owed = Owed(parent, CLOSED, asker.person, asker.cause, asker.trace)
            yield from turns.tell_parent(session, 1, found.label, owed, at)
        yield Wake(Topic.LOOK, session)
        yield Wake(Topic.TURNS)
    return (yield from child(session))


def others(asker: Asker, count: int) -> Transaction[list[Session]]:
    """The other sessions of the turn's person, as far as its readers know them, the last used first."""
    reading = yield from reader(asker)
    listed = sessions.talks if asker.held is None else sessions.owned
    owned = yield from listed(asker.person, count, None, 0.0)
    owned = owned if asker.only is None else [session for session in owned if session.id == asker.only]
    found = yield from readers.seen(reading, owned)
    named: list[Session] = []
    for session in found:
        named += [replace(session, title=(yield from readers.title(reading, session.id)))]
    return named


def history(asker: Asker, session: SessionId) -> Transaction[list[Entry]]:
    """The transcript of a session, as far as the readers of the turn have read it."""
    known = yield from one(Session, q.session(session=session))
    return (yield from readers.path((yield from reader(asker)), known))


def children(asker: Asker, count: int) -> Transaction[list[Child]]:
    """Children of a session, if it is the person's own: open ones first, the newest first."""
    owner = yield from actors.now(asker.person)
    found: list[Child] = []
    reading = yield from reader(asker)
    for child in (yield from each(Child, q.spawned(session=asker.session, owner=owner, count=count))):
        found += [child] if (yield from readers.knows(reading, child.id)) else []
    return found


def _ask(
    asker: Asker, to: SessionId, call: str, words: Sent, lane: str | None, route: str, wait: float | None = None
) -> Ask:
    return Ask(
        to,
        TurnKind.SENT,
        call,
        (words,),
        asker.person,
        asker.name,
        lane,
        route,
        asker.trace,
        identity=asker.program.identity if asker.program else "",
        by=asker.session or None,
        by_turn=asker.turn or None,
        cause=asker.cause,
        wait=wait,
    )


def _within_budget(asker: Asker, limits: Limits) -> Transaction[None]:
    """Refuse what would be one turn too many of all that comes of one message, so that no two agents talk for ever."""
    if (yield from one(int, q.caused(cause=asker.cause, most=limits.budget))) >= limits.budget:
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
        for session in (yield from each(SessionId, q.waits_for(session=left.pop()))):
            if session == other:
                return True
            if session not in seen:
                seen.add(session)
                left.append(session)
    return False


def _answer(session: SessionId, turn: int, outcome: Outcome) -> Transaction[Taken]:
    """The answer of a turn: the agent's words, or the gateway's where it failed."""
    written = yield from each(Written, q.written_by(session=session, turn=turn, count=_WRITTEN))
    role = Role.GATEWAY if outcome is Outcome.FAILED else Role.AGENT
    said = next((entry for entry in written if entry.role is role), Written(0, role, ()))
    return Taken(outcome, plain_text(said.parts).strip(), said.n)
