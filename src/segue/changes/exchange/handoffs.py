"""Handoffs: asked for, driven by whoever claimed them, and settled on both sides in one transaction.

Law: from its request to its end a handoff puts its session off, so that only its opening turn runs there; what is said
meanwhile waits behind it. It ends in one of two ways. Done: the sent record of the opening's last message, the release
of the origin and the end are one transaction. Not done: the destination's former binding, the tip before the opening
turn, and the reason in the origin are one transaction. Either holds its lanes by key, then its sessions by id, then
itself.
"""

from msgspec.structs import replace

from segue.changes.exchange import deliveries, routes, turns
from segue.changes.exchange.deliveries import keys_between
from segue.changes.people import actors
from segue.changes.places import addresses, lanes
from segue.changes.rows import each, first, one
from segue.changes.sessions import moves, titles, transcripts
from segue.changes.sessions.rows import Locked
from segue.core.contracts.database import Transaction
from segue.core.contracts.wakes import Topic, Wake
from segue.core.destinations import OWN, shown
from segue.core.handoffs import Driven, HandoffRecord, Patience, State, Step, after, deadline
from segue.core.lanes import Address, Lane, Place, Rules
from segue.core.messages import Opening, Outgoing
from segue.core.moves import Consent, Limits, Why
from segue.core.moves import Handoff as Move
from segue.core.text.notices import handed_off, handoff_failed, stayed
from segue.core.transcripts import Draft, Entry, Session, TipMove
from segue.core.turns import Ask, Claim, Finish, Finished, Outcome, TurnKind
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q
from segue.database.transactions import Moved
from segue.errors import Fenced, Refusal, Refused

_WHY = {
    Outcome.ANSWERED: "the agent said nothing",
    Outcome.FAILED: "the agent failed",
    Outcome.STOPPED: "it was stopped",
}
"""Why a handoff came to nothing whose opening turn ended so."""
LATE = "nothing happened for too long"
_CHANGED = "the place there, or whose conversation it is, changed meanwhile"
_AT_ONCE = 64


def request(
    id: str, session: SessionId, origin: Lane, place: Place, by: PersonId, patience: Patience, at: Moment
) -> Transaction[HandoffRecord]:
    """Ask for a handoff of the session that a lane speaks to; raises `Refused` and changes nothing if it can't be."""
    by = yield from actors.hold(by)
    origin = yield from lanes.now(origin)
    yield from lanes.hold(origin)
    if (yield from lanes.speaks_to(origin)) != session:
        raise Refused(Refusal.NOTHING_BOUND)
    locked = yield from one(Locked, q.lock_session(session=session))
    if locked.owner != by:
        raise Refused(Refusal.NOT_ALLOWED)
    if locked.closed:
        raise Refused(Refusal.CLOSED)
    if (yield q.handoff_running(session=session)):
        raise Refused(Refusal.HANDOFF_RUNNING)
    if locked.busy:
        raise Refused(Refusal.BUSY)
    yield q.add_handoff(
        handoff=id,
        session=session,
        origin=origin.key,
        destination=place.address.key,
        kind=place.kind,
        by=by,
        at=at,
        deadline=deadline(at, at, patience),
    )
    yield q.put_off(session=session, seconds=_longest(patience))
    yield Wake(Topic.HANDOFF, session)
    return (yield from read(id))


def find(id: str) -> Transaction[HandoffRecord | None]:
    """The handoff with an id, if there is one."""
    return (yield from first(HandoffRecord, q.handoff(handoff=id)))


def read(id: str) -> Transaction[HandoffRecord]:
    """A handoff by its id."""
    found = yield from find(id)
    if found is None:
        raise Refused(Refusal.NO_HANDOFF)
    return found


def last_from(lane: Lane) -> Transaction[HandoffRecord | None]:
    """The newest handoff from a lane."""
    return (yield from first(HandoffRecord, q.last_handoff_from(lane=lane.key)))


def last_of(session: SessionId) -> Transaction[HandoffRecord | None]:
    """The newest handoff of a session."""
    return (yield from first(HandoffRecord, q.last_handoff_of(session=session)))


def former(handoff: HandoffRecord) -> Transaction[Place | None]:
    """The thread that a session was handed off to before in the same chat, if nothing is spoken of there since.

    One to which the last handoff failed isn't tried again.
    """
    last = yield from first(
        HandoffRecord, q.last_handoff_to(session=handoff.session, destination=handoff.destination.key, but=handoff.id)
    )
    if last is None or last.state is not State.DONE or last.lane is None or not last.lane.address.thread:
        return None
    lane = yield from lanes.now(last.lane)
    if (yield from lanes.speaks_to(lane)) is not None:
        return None
    return (yield from first(Place, q.address(address=lane.address.key)))


def running(session: SessionId) -> Transaction[HandoffRecord | None]:
    """The handoff of a session that hasn't come to its end."""
    id = yield from first(str, q.handoff_running(session=session))
    return (yield from read(id)) if id else None


class Unclaimed(Value, frozen=True):
    """A handoff that nobody else drives who is alive, and where it goes."""

    id: str
    destination: Address


def unclaimed(me: str) -> Transaction[list[Unclaimed]]:
    """Handoffs that nobody else drives who is alive."""
    return (yield from each(Unclaimed, q.handoffs_unclaimed(me=me, count=_AT_ONCE)))


def claim(id: str, me: str, patience: Patience, at: Moment) -> Transaction[Driven | None]:
    """Drive a handoff, or take it over from one that died; None if somebody else drives it or it is over.

    Whoever doesn't know whether they claimed it claims it again.
    """
    found = yield from first(HandoffRecord, q.handoff(handoff=id))
    if found is None or found.settled is not None:
        return None
    state, late = after(found.state, Step.CLAIM), deadline(found.requested, at, patience)
    epoch = yield from first(int, q.claim_handoff(handoff=id, me=me, state=state, at=at, deadline=late))
    if epoch is None:
        return None
    yield Wake(Topic.HANDOFF, found.session)
    title = yield from titles.of(found.session)
    return Driven(found, me, epoch, str(title) if title else "")


def open_in(
    driven: Driven,
    place: Place,
    rules: Rules,
    limits: Limits,
    patience: Patience,
    opening: Opening,
    at: Moment,
) -> Transaction[Lane]:
    """Bind the session in the new place and have its agent speak first there; raises `Fenced` or `Refused`."""
    found = yield from read(driven.handoff.id)
    if found.lane is not None and found.epoch == driven.epoch:
        # A commit of which nobody knew whether it happened did happen.
        return found.lane
    known = yield from first(Place, q.address(address=place.address.key))
    if known is not None:
        place = replace(known, opened=place.opened)
    lane = yield from addresses.lane(place, (), found.by, rules, f"{found.id}/merge", at)
    wanted = Move(found.origin, lane, Consent.GIVEN)
    # The handoff is one move, whichever of its steps writes it down.
    made = yield from moves.make(wanted, found.by, limits, found.id, at, within=found.id)
    if made.session != found.session:
        # The origin turned out to be another lane, which speaks to something else.
        raise Refused(Refusal.MOVED_SINCE)
    person = yield from actors.now(found.by)
    asked = Ask(
        found.session,
        TurnKind.OPENING,
        f"handoff/{found.id}",
        (opening,),
        person,
        lane=lane.key,
        route=lane.address.key,
        trace=found.id,
    )
    turn = (yield from turns.ask(asked, at)).turn
    until, by = deadline(found.requested, at, patience), {"me": driven.me, "epoch": driven.epoch}
    bound = q.handoff_bound(handoff=found.id, lane=lane.key, move=found.id, turn=turn, at=at, deadline=until, **by)
    if not (yield bound):
        raise Fenced(f"handoff {found.id}")
    yield q.go_on(session=found.session, turn=0)
    yield Wake(Topic.HANDOFF, found.session)
    return lane


def fail(driven: Driven, why: str, at: Moment) -> Transaction[None]:
    """Whoever drives it can't go on."""
    found = yield from _held(driven.handoff.id)
    if found.settled is not None or found.epoch != driven.epoch:
        raise Fenced(f"handoff {found.id}")
    yield from _undo(found, after(found.state, Step.FAIL), why, at)
    yield from _say_why(found, State.FAILED, why, at)


def cancel(handoff: str, by: PersonId, at: Moment) -> Transaction[HandoffRecord]:
    """The person who asked thought better of it."""
    found = yield from _held(handoff)
    if (yield from actors.now(found.by)) != (yield from actors.now(by)):
        raise Refused(Refusal.NOT_ALLOWED)
    if found.settled is not None:
        raise Refused(Refusal.NO_HANDOFF)
    yield from _undo(found, after(found.state, Step.CANCEL), "it was cancelled", at)
    return found


def overdue(at: Moment) -> Transaction[list[str]]:
    """Handoffs that made no progress in time."""
    return (yield from each(str, q.handoffs_overdue(at=at, count=_AT_ONCE)))


def expire(handoff: str, at: Moment) -> Transaction[HandoffRecord | None]:
    """End a handoff that made no progress in time; None if it did after all."""
    found = yield from _held(handoff)
    if found.settled is not None or found.deadline is None or found.deadline >= at:
        return None
    # The platform's own reason, if its message was refused for now again and again.
    why = (yield from first(str, q.trouble_of_handoff(handoff=found.id))) or LATE
    yield from _undo(found, after(found.state, Step.FAIL), why, at)
    yield from _say_why(found, State.FAILED, why, at)
    return found


def left_open(handoff: str, thread: Address, at: Moment) -> Transaction[None]:
    """A thread was opened for a handoff that had ended by then: say there where the conversation is."""
    found = yield from read(handoff)
    if found.settled is not None and found.lane is None:
        yield from _say_where(found, thread, at)


class OpeningSequel:
    """A handoff, which hangs on the last message of its opening turn."""

    kind = TurnKind.OPENING

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self.pace = patience.progress / 10

    def grew(self, session: SessionId, turn: int, at: Moment) -> Transaction[None]:
        """The opening turn says something: its time starts anew."""
        id = yield from first(str, q.opening_of(session=session, turn=turn))
        if id is not None:
            found = yield from read(id)
            yield q.handoff_wrote(handoff=found.id, at=at, deadline=deadline(found.requested, at, self._patience))
            yield Wake(Topic.HANDOFF, session)

    def finish(self, held: Claim, done: Finish, at: Moment) -> Transaction[Finished]:
        """Finish an opening turn; what waits behind it waits on until its last message was sent, or can't be."""
        [turn] = done.turns
        id = yield from first(str, q.opening_of(session=held.session, turn=turn))
        if id is None:
            raise Fenced(f"turn {turn} of session {held.session}")
        if done.outcome is not Outcome.ANSWERED or not done.replies:
            found = yield from _held(id)
            yield from turns.check(held)
            why = _WHY[done.outcome]
            state = State.CANCELLED if done.outcome is Outcome.STOPPED else State.FAILED
            yield from _undo(found, state, why, at)
            yield from _say_why(found, state, why, at)
            return Finished(None, None, None)
        finished = yield from turns.finish(held, done, at, last=False)
        yield q.carry_handoff(handoff=id, **keys_between(held.session, turn))
        found = yield from read(id)
        yield q.handoff_answered(
            handoff=found.id,
            tip_session=finished.before.session if finished.before else None,
            tip=finished.before.n if finished.before else None,
            at=at,
            deadline=deadline(found.requested, at, self._patience),
        )
        yield q.put_off(session=held.session, seconds=_longest(self._patience))
        yield Wake(Topic.HANDOFF, held.session)
        return replace(finished, next=None)

    def sent(self, held: Outgoing, message: str, at: Moment) -> Transaction[None]:
        """The opening's last message was sent: the handoff is done, unless it had ended before."""
        found = yield from _held(held.sequel)
        yield from deliveries.hold_order({held.delivery.address, found.origin.address})
        yield from deliveries.sent(held, message, at, last=False)
        if found.settled is not None:
            yield from _say_where(found, held.delivery.address, at)
        if found.settled is not None or (yield q.handoff_unsent(handoff=found.id)):
            return
        if not (yield from _still_theirs(found)):
            yield from _undo(found, after(found.state, Step.FAIL), _CHANGED, at)
            yield from _say_why(found, State.FAILED, _CHANGED, at)
            return
        origin = yield from lanes.now(found.origin)
        if found.move is not None and (yield from _speaks(origin, found.session)):
            # Under the handoff's own move, so that whoever takes that back takes back both sides.
            yield from moves.bind(origin, None, Why.HANDOFF, found.by, found.move, at)
        yield q.settle_handoff(handoff=found.id, state=after(found.state, Step.COMPLETE), error=None, at=at)
        yield Wake(Topic.HANDOFF, found.session)
        yield q.go_on(session=found.session, turn=0)
        if found.origin.address.platform not in OWN:
            # A terminal and a page are shown each step of it.
            key = f"handoff/{found.id}/done"
            yield from deliveries.notify(found.origin.address, handed_off(found.place), key, (), at)

    def give_up(self, held: Outgoing, error: str, at: Moment) -> Transaction[None]:
        """The opening's last message can't ever be sent: the handoff failed."""
        found = yield from _held(held.sequel)
        yield from deliveries.give_up(held, error, at)
        if found.settled is None:
            yield from _undo(found, after(found.state, Step.FAIL), error, at)
            yield from _say_why(found, State.FAILED, error, at)

    def is_over(self, id: str) -> Transaction[bool]:
        """Whether the handoff has ended."""
        return (yield from read(id)).settled is not None


def _undo(found: HandoffRecord, state: State, why: str, at: Moment) -> Transaction[None]:
    """Put both sides back as they were; all that is touched is held."""
    slipped = False
    if found.lane is not None and found.turn is not None:
        slipped = yield from _withdraw(found, found.turn, at)
        yield from _give_back(found.lane, found, at)
    yield q.settle_handoff(handoff=found.id, state=state, error=why, at=at)
    yield Wake(Topic.HANDOFF, found.session)
    yield q.go_on(session=found.session, turn=found.turn or 0)
    if found.lane is not None and (slipped or (found.lane.address.thread and not found.destination.thread)):
        # A thread that was opened for it stays: whoever finds it there is told.
        yield from _say_where(found, found.lane.address, at)


def _say_why(found: HandoffRecord, state: State, why: str, at: Moment) -> Transaction[None]:
    """Tell the origin that the conversation is still there."""
    how = "was stopped" if state is State.CANCELLED else f"failed: {why}"
    stays = yield from _speaks((yield from lanes.now(found.origin)), found.session)
    text = handoff_failed(found.place, how, stays=stays)
    yield from deliveries.notify(found.origin.address, text, f"handoff/{found.id}/undone", (), at)


def _withdraw(found: HandoffRecord, turn: int, at: Moment) -> Transaction[bool]:
    """End the opening turn, or take it back, and keep what it wanted to send; returns whether some of that is out."""
    withdrawn = Outcome.WITHDRAWN
    if not (yield q.end_turn(session=found.session, seq=turn, outcome=withdrawn, within=None, error=None, at=at)):
        yield from _tip_back(found, at)
    keys = keys_between(found.session, turn)
    out = bool((yield q.sent_between(**keys)))
    yield q.withdraw_deliveries(at=at, **keys)
    return out


def _give_back(lane: Lane, found: HandoffRecord, at: Moment) -> Transaction[None]:
    """The destination speaks again to what it spoke to before, unless it has moved on from this session by itself."""
    then, lane = lane, (yield from lanes.now(lane))
    if found.move is None or (yield from lanes.speaks_to(lane)) not in (found.session, None):
        return
    spoke = yield from moves.spoke_before(then, found.move)
    former = spoke.session if spoke else None
    if former is not None and (
        (yield from one(Locked, q.lock_session(session=former))).closed
        or not (yield from routes.hears(lane.address, former))
    ):
        former = None
    back = f"{found.id}/back"
    yield q.add_move(move=back, kind="undo", lane=lane.key, session=former, by=found.by, at=at)
    yield q.undo_move(move=found.move, at=at)
    yield from moves.bind(lane, former, Why.UNDO, found.by, back, at)


def _still_theirs(found: HandoffRecord) -> Transaction[bool]:
    """Whether the new place still speaks to the session, which still belongs to whoever handed it off.

    Chats or people that turn out to be one, or not, move bindings and sessions whatever is under way.
    """
    session = yield from one(Session, q.session(session=found.session))
    there = found.lane is not None and (yield from _speaks((yield from lanes.now(found.lane)), found.session))
    return there and session.owner == (yield from actors.now(found.by))


def _speaks(lane: Lane, session: SessionId) -> Transaction[bool]:
    return (yield from lanes.speaks_to(lane)) == session


def _tip_back(found: HandoffRecord, at: Moment) -> Transaction[None]:
    """The tip goes to before the opening turn; what else came in since is said again after it."""
    session = yield from one(Session, q.session(session=found.session))

    def opened(entry: Entry) -> bool:
        return (entry.tip.session, entry.turn) == (found.session, found.turn)

    path = yield from transcripts.path(session.tip, lambda newest: any(map(opened, newest)) and not opened(newest[0]))
    opening = [n for n, entry in enumerate(path) if opened(entry)]
    if not opening:
        return
    since = path[opening[-1] + 1 :]
    yield from transcripts.back_to(found.session, path[opening[0]].parent, TipMove.HANDOFF, found.by, at)
    again = [Draft(entry.author, entry.parts, entry.source) for entry in since]
    if again:
        yield from transcripts.append(found.session, again, at)


def _say_where(found: HandoffRecord, address: Address, at: Moment) -> Transaction[None]:
    """Something is to be seen of a handoff that came to nothing: say where the conversation is."""
    text = stayed(shown(found.origin.address.platform, found.origin.address.account))
    yield from deliveries.notify(address, text, f"handoff/{found.id}/stayed", (), at)


def _held(id: str) -> Transaction[HandoffRecord]:
    """Hold a handoff with all that its end touches."""
    found = yield from read(id)
    yield from actors.hold(found.by)
    touched = {(yield from lanes.now(found.origin))}
    if found.lane is not None:
        touched.add((yield from lanes.now(found.lane)))
    for lane in sorted(touched, key=lambda lane: lane.key):
        yield from lanes.hold(lane)
    sessions: set[str] = {found.session}
    if found.move is not None:
        sessions |= {step.before for step in (yield from moves.made_by(found.move)) if step.before is not None}
    for session in sorted(sessions):
        yield q.lock_session(session=session)
    now = yield from one(HandoffRecord, q.lock_handoff(handoff=id))
    if now.lane != found.lane:
        raise Moved
    return now


def _longest(patience: Patience) -> float:
    """Seconds after which a session goes on even if nobody was left to settle its handoff."""
    return patience.total + patience.progress
