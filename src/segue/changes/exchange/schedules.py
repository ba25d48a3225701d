"""Scheduled work: made once by its key, run once for each time that it is due, whichever replica notices.

Law: a run is a row whose key is the work and the time, written in the transaction that queues its turn and sets when
the work is due next. So a time that is due makes one turn or none, and a turn that is queued outlives its replica.
"""

from collections.abc import Sequence

import msgspec

from segue.changes import audit
from segue.changes.audit import Event, Fact
from segue.changes.exchange import deliveries, routes, turns
from segue.changes.people import actors
from segue.changes.people.tokens import Still
from segue.changes.places import lanes
from segue.changes.rows import each, first, one
from segue.changes.sessions import readings, sessions
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Lane, Place
from segue.core.messages import DueWork, Part, plain_text
from segue.core.schedules import Plan
from segue.core.text.notices import schedule_ended
from segue.core.transcripts import Session
from segue.core.turns import Ask, TurnKind
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q
from segue.errors import Refusal, Refused

_MOST_LISTED = 1000
LOCAL = "local"
_LIST = "schedules"


class Order(Value, frozen=True):
    """Work that somebody wants done, and the place for its answer."""

    session: SessionId
    lane: str | None
    owner: PersonId
    task: str
    plan: Plan
    deliver: str
    """As people name it: origin, local, an account for its home, or an account with a chat."""
    route: str
    """The key of that address; empty for a file."""


class Schedule(Value, frozen=True):
    """Scheduled work."""

    id: str
    session: SessionId
    lane: str | None
    owner: PersonId
    task: str
    line: str
    zone: str
    deliver: str
    route: str
    since: Moment
    due: Moment | None
    ended: Moment | None


class Time(Value, frozen=True):
    """A time at which work is due: how often it was missed before, and when it is due next."""

    found: Moment
    """When it was to be done by the record: the first of those that were missed."""
    due: Moment
    missed: int
    next: Moment | None


class Recipient(Value, frozen=True):
    """The address for the answer of scheduled work, by its key."""

    route: str
    agreed: bool = False
    """It is a home, and the work the host's: they said yes to whoever reads there, for sessions of their own."""


class AnsweredRun(Value, frozen=True):
    """A run that was answered, and the turn that did."""

    schedule: str
    due: Moment
    task: str
    zone: str
    session: SessionId
    turn: int


class Unkept(Value, frozen=True):
    """A run that was answered, with the answer that is stored as its result."""

    schedule: str
    due: Moment
    task: str
    zone: str
    text: str


def make(order: Order, id: str, call: str, at: Moment) -> Transaction[Schedule]:
    """Schedule work; asked again under the same key, it is the same work."""
    made = yield from known(call)
    if made is not None:
        return made
    owner = yield from actors.hold(order.owner)
    yield q.add_schedule(
        id=id,
        call=call,
        session=order.session,
        lane=order.lane,
        owner=owner,
        task=order.task,
        line=order.plan.line,
        zone=order.plan.zone,
        deliver=order.deliver,
        route=order.route,
        due=order.plan.due,
        at=at,
    )
    return (yield from one(Schedule, q.schedule_of_call(call=call)))


def known(call: str) -> Transaction[Schedule | None]:
    """The work that a call made when it was first run."""
    return (yield from first(Schedule, q.schedule_of_call(call=call)))


def owned(person: PersonId) -> Transaction[list[Schedule]]:
    """A person's scheduled work that is still to come, the next first; whoever they were before counts too."""
    person = yield from actors.now(person)
    everyone = yield from each(PersonId, q.everyone_in(person=person))
    found: list[Schedule] = []
    for owner in everyone:
        found += yield from each(Schedule, q.schedules_of(owner=owner, count=_MOST_LISTED))
    return sorted(found, key=lambda schedule: (schedule.due or 0.0, schedule.id))


def cancel(id: str, person: PersonId, at: Moment) -> Transaction[Schedule]:
    """End one's own scheduled work; somebody else's is as if it weren't there."""
    own = yield from owned(person)
    for schedule in own:
        if schedule.id == id and (yield q.cancel_schedule(id=id, at=at)):
            return schedule
    raise Refused(Refusal.NO_SCHEDULE)


def keep_list(lane: Lane, person: PersonId, shown: Sequence[Schedule], at: Moment) -> Transaction[None]:
    """Remember the list that a person is shown."""
    ids = msgspec.json.encode([schedule.id for schedule in shown]).decode()
    yield q.keep_list(lane=lane.key, person=person, kind=_LIST, sessions=ids, at=at)


def on_line(lane: Lane, person: PersonId, number: int) -> Transaction[str]:
    """The work on a line of the list that the person was shown last."""
    shown = (yield from first(tuple[str, ...], q.kept_list(lane=lane.key, person=person, kind=_LIST))) or ()
    if not 1 <= number <= len(shown):
        raise Refused(Refusal.NO_SCHEDULE)
    return shown[number - 1]


def due(at: Moment, count: int) -> Transaction[list[Schedule]]:
    """Scheduled work that is due by now."""
    return (yield from each(Schedule, q.schedules_due(at=at, count=count)))


def ahead(at: Moment, after: Schedule | None, count: int) -> Transaction[list[Schedule]]:
    """Return scheduled work that ran while the clock was ahead of what it is now, and is due later."""
    due, id = (after.due or at, after.id) if after is not None else (at, "")
    return (yield from each(Schedule, q.schedules_ahead(at=at, after_due=due, after=id, count=count)))


def set_due(schedule: Schedule, due: Moment) -> Transaction[bool]:
    """Let scheduled work be due at another time, unless it ran or ended meanwhile."""
    if not (yield q.hold_schedule(id=schedule.id, due=schedule.due)):
        return False
    yield q.set_due(id=schedule.id, due=due, ended=None)
    return True


def run(schedule: Schedule, time: Time, to: Recipient, note: str, still: Still, at: Moment) -> Transaction[bool]:
    """Queue the turn of work that is due, once; returns whether this did. Of whoever may talk no more it ends.

    It is asked of the session that the lane in which it was asked for speaks to now, so that people can go on from the
    answer; of the one in which it was asked for if that lane has none, or one that isn't its person's. Where others
    would read the answer who haven't read that session, it goes to where it was asked for.
    """
    if not (yield q.hold_schedule(id=schedule.id, due=time.found)):
        return False
    ended = at if time.next is None else None
    yield q.set_due(id=schedule.id, due=time.next, ended=ended)
    kept = None if schedule.deliver == LOCAL else at
    if not (yield q.add_run(schedule=schedule.id, due=time.due, missed=time.missed, kept=kept, at=at)):
        return False
    owner = yield from actors.now(schedule.owner)
    if not (yield from still(owner, (yield from _asked_at(schedule)))):
        yield q.set_due(id=schedule.id, due=None, ended=at)
        yield q.keep_run(schedule=schedule.id, due=time.due, at=at)
        yield from audit.note(Fact(Event.REFUSED, owner, detail="scheduled work"), at)
        return False
    session, lane = yield from _session(schedule, owner)
    route = to.route
    if route and not (to.agreed and session is not None and (yield from sessions.known(session)).owner == owner):
        route = yield from _heard_in(session, route, schedule)
    if session is None:
        yield q.set_due(id=schedule.id, due=None, ended=at)
        yield q.keep_run(schedule=schedule.id, due=time.due, at=at)
        note = schedule_ended(schedule.task)
    else:
        call = f"schedule/{schedule.id}/{time.due:.0f}"
        work = DueWork(schedule.task, schedule.line, schedule.zone, time.due, at, time.missed)
        ask = Ask(session, TurnKind.SCHEDULED, call, (work,), owner, lane=lane, route=route)
        asked = yield from turns.ask(ask, at)
        yield q.set_run(schedule=schedule.id, due=time.due, session=asked.session, turn=asked.turn)
    if note and route:
        yield from deliveries.notify(Address.parse(route), note, f"schedule/{schedule.id}/{time.due:.0f}", (), at)
    return True


def _heard_in(session: SessionId | None, route: str, schedule: Schedule) -> Transaction[str]:
    """The address for an answer: where it is to go, else where it was asked for, of those that may hear the session."""
    lane = yield from _lane(schedule)
    asked = lane.address.key if lane else ""
    if session is None:
        return asked
    if lane is None and schedule.lane and Address.parse(route).outside == Lane.parse(schedule.lane).address.outside:
        # What was asked for in private isn't told to the people who came to that place since.
        return ""
    for address in filter(None, (route, asked)):
        heard = yield from routes.hears(Address.parse(address), session)
        # What is to be done was written in the session in which it was asked for.
        if heard and (address == asked or (yield from routes.hears(Address.parse(address), schedule.session))):
            return address
    return ""


def _lane(schedule: Schedule) -> Transaction[Lane | None]:
    """The lane in which work was asked for; None if that was in private and other people read there by now."""
    lane = (yield from lanes.now(Lane.parse(schedule.lane))) if schedule.lane else None
    if lane is not None and (yield q.left_by_place(session=schedule.session, address=lane.address.key)):
        return None
    return lane


def _asked_at(schedule: Schedule) -> Transaction[Place | None]:
    """The place where work was asked for; None if that is nowhere."""
    address = Lane.parse(schedule.lane).address if schedule.lane else None
    if address is None:
        return None
    return (yield from first(Place, q.address(address=address.key))) or Place(address)


def unkept(count: int) -> Transaction[list[Unkept]]:
    """Runs that were answered and whose result isn't stored."""
    return (yield from _with_answers((yield from each(AnsweredRun, q.runs_unkept(count=count)))))


def list_answered(schedule: str) -> Transaction[list[Unkept]]:
    """Every run of scheduled work that was answered, with its answer as it stands now."""
    return (yield from _with_answers((yield from each(AnsweredRun, q.runs_answered(schedule=schedule)))))


def keep(run: Unkept, at: Moment) -> Transaction[bool]:
    """The result of a run is stored; returns whether its answer still stands: it may have been forgotten meanwhile."""
    yield q.keep_run(schedule=run.schedule, due=run.due, at=at)
    return run in (yield from list_answered(run.schedule))


def _with_answers(runs: Sequence[AnsweredRun]) -> Transaction[list[Unkept]]:
    found = []
    for run in runs:
        answers = yield from each(tuple[Part, ...], q.answer_of_turn(session=run.session, turn=run.turn))
        text = "\n\n".join(filter(None, map(plain_text, answers)))
        found.append(Unkept(run.schedule, run.due, run.task, run.zone, text))
    return found


def find(id: str, person: PersonId) -> Transaction[Schedule]:
    """A person's own scheduled work, also if it has ended; somebody else's is as if it weren't there."""
    schedule = yield from first(Schedule, q.schedule_by_id(id=id))
    if schedule is None or (yield from actors.now(schedule.owner)) != (yield from actors.now(person)):
        raise Refused(Refusal.NO_SCHEDULE)
    return schedule


def spoken_at(person: PersonId, address: Address) -> Transaction[bool]:
    """Whether a place is somebody's own: their share of it, or where they began a session."""
    return bool((yield q.spoken_at(person=(yield from actors.now(person)), address=address.key)))


def _session(schedule: Schedule, owner: PersonId) -> Transaction[tuple[SessionId | None, str | None]]:
    """The session that work is asked of, and the lane that it comes from.

    None if they are closed, or if others read them by now who didn't when the work was asked for.
    """
    lane = yield from _lane(schedule)
    here = (yield from lanes.speaks_to(lane)) if lane else None
    for id in dict.fromkeys((here, schedule.session)):
        if id is None:
            continue
        session = yield from one(Session, q.session(session=id))
        since = schedule.since if id == schedule.session else 0.0
        more = set((yield from readings.widened(id, owner, since))) - ({lane.address} if lane else set())
        if session.closed is None and not more and (id == schedule.session or session.owner == owner):
            return session.id, lane.key if lane and id == here else None
    return None, None
