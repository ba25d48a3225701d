"""Turns: claimed by a holder, journaled while they run, finished in one fenced transaction."""

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from segue.changes.exchange import deliveries, routes
from segue.changes.exchange.deliveries import keys_between
from segue.changes.places import lanes
from segue.changes.rows import each, first, must, one
from segue.changes.sessions import deletions, moves, readings, titles, transcripts
from segue.core.contracts.agents import SummedUp, Usage
from segue.core.contracts.database import Transaction
from segue.core.contracts.wakes import Topic, Wake
from segue.core.lanes import Address, Audience, Lane, Place
from segue.core.messages import ChildResult, Outgoing, Part, Parts, Summary, encode_parts
from segue.core.moves import Limits
from segue.core.text.notices import KEPT, answered_by
from segue.core.transcripts import GATEWAY, Draft, Ending, Entry, Tip, TipMove, nowhere
from segue.core.turns import (
    SUSPECT,
    Ask,
    Asked,
    Beneath,
    Claim,
    Finish,
    Finished,
    Onto,
    Owed,
    Reply,
    Room,
    Run,
    Turn,
    TurnKind,
    together,
    with_swap,
)
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q
from segue.database.transactions import Moved
from segue.errors import Fenced, Refusal, Refused

_MOST_TOGETHER = 100
_MOST_BYTES = 1 << 20
"""Bytes of what waits that are read at once; the first is, however long."""
_ROOM = 1500
"""Characters of a reply that leave room for one line more on every platform."""


class Claimed(Value, frozen=True):
    """A session that was claimed, as it stands."""

    id: SessionId
    epoch: int
    head: int
    tip: Tip | None
    fails: int
    deaths: int
    tried: int
    """The last turn that an earlier try took."""
    owes: SessionId | None
    waited: float
    bound: str


class Slot(Value, frozen=True):
    """Room for one more turn of a session, and how the session stands."""

    seq: int
    holder: str | None
    epoch: int
    head: int
    tip: Tip | None
    bound: str


class Stands(Value, frozen=True):
    """A session that a claim holds, as it was looked at, and the turn that it runs."""

    tip: Tip | None
    length: int
    head: int
    tail: int
    gathers: bool
    """Whether what waits isn't due yet: more of an album is on its way."""
    person: PersonId
    deleted: Moment | None
    """When its author took the turn back, if they did while it ran."""
    ended: bool
    abandoned: bool
    """Whether the lane that asked speaks to another session by now."""
    label: str
    """The label of a child session whose answer goes to no place of its own; else empty."""
    afresh: bool
    """Whether other people read the place by now in which it is answered: the answer waits in its session."""
    bound: str


class Held(Value, frozen=True):
    """A session that a claim still holds, locked."""

    tip: Tip | None
    length: int
    head: int
    tail: int


class Backlog(Value, frozen=True):
    """How many turns of a session run or wait, and when the last of them came."""

    count: int
    last: Moment | None


class Addressee(Value, frozen=True):
    """A session as the agents of its owner find it."""

    owner: PersonId
    closed: bool
    ending: Ending
    label: str
    parent: SessionId | None
    depth: int


def claim(me: str, count: int, room: Room | None = None) -> Transaction[list[Run]]:
    """Take sessions that have turns and no holder, as far as there is room for their people."""
    runs: list[Run] = []
    room = room or Room(count)
    while len(runs) < count:
        full, most = " ".join(room.full), count - len(runs)
        found = yield from each(Claimed, q.claim(me=me, count=most, full=full, only=room.only, below=room.below))
        for session in found:
            run = yield from _claimed(me, session, room)
            if run is not None:
                runs.append(run)
                if run.deaths == SUSPECT and not room.suspect:
                    room = msgspec.structs.replace(room, beside=(yield from _half(me)))
                room = room.without(run)
        if len(found) < most:
            break
    return runs


def longest_wait(room: Room) -> Transaction[float]:
    """Seconds for which sessions wait until there is a slot, of people who might have one more; 0 if none does."""
    return (yield from first(float, q.longest_wait(full=" ".join(room.full), below=room.below))) or 0.0


def _claimed(me: str, found: Claimed, room: Room) -> Transaction[Run | None]:
    """The run of a session that was claimed; it is let go again if nothing waits, or there is no room."""
    turns = yield from _next(found.id, found.head, found.tried)
    if not turns:
        yield q.nothing_waits(session=found.id)
        return None
    if not room.takes(turns[0].person) or found.deaths >= room.below:
        yield q.unclaim(session=found.id)
        return None
    yield q.set_running(session=found.id, running=turns[-1].seq)
    done = yield from journaled(found.id, turns[0].seq)
    streamed = bool((yield q.streams_of(**keys_between(found.id, turns[0].seq))))
    asked = bool((yield q.turn_asked(session=found.id, turn=turns[0].seq)))
    held = Claim(found.id, me, found.epoch)
    return Run(
        held,
        turns,
        found.tip,
        found.fails,
        found.deaths,
        done,
        streamed,
        found.owes,
        found.waited,
        asked,
        found.bound,
    )


def _half(me: str) -> Transaction[int]:
    """Return half of the suspects that wait or were just claimed, rounded up."""
    return ((yield from one(int, q.count_suspects(me=me, deaths=SUSPECT))) + 1) // 2


def waiting(session: SessionId, count: int, after: int = 0) -> Transaction[list[Turn]]:
    """The turns of a session that nobody has answered, the running one first; no more of them than is read at once."""
    return (yield from each(Turn, q.waiting(session=session, head=after, count=count, bytes=_MOST_BYTES)))


def backlog(session: SessionId) -> Transaction[Backlog]:
    """The turns of a session that nobody has answered, counted."""
    return (yield from one(Backlog, q.backlog(session=session)))


def failures(entries: Iterable[Entry]) -> Transaction[frozenset[Tip]]:
    """Those of some entries with which a turn failed for good."""
    found = set()
    for entry in entries:
        if (yield q.turn_failed(session=entry.tip.session, seq=entry.turn)):
            found.add(entry.tip)
    return frozenset(found)


def _next(session: SessionId, head: int, tried: int = 0) -> Transaction[tuple[Turn, ...]]:
    """Return the turns that are answered next as one; a try that broke off is made again with no more than it took."""
    opening = yield from first(Turn, q.opening_waiting(session=session))
    if opening is not None:
        return (opening,)
    found = yield from waiting(session, _MOST_TOGETHER, head)
    return together([turn for turn in found if turn.seq <= tried] or found)


def journal(held: Claim, turn: int, call: str, parts: Parts, at: Moment) -> Transaction[None]:
    """Keep a finished tool call of a running turn, so that a retry sees it."""
    yield from check(held)
    text = encode_parts(parts)
    yield q.add_journal(session=held.session, turn=turn, call=call, epoch=held.epoch, parts=text, at=at)


def journaled(session: SessionId, turn: int) -> Transaction[Parts]:
    """The finished tool calls of a turn and their results, in order."""
    calls = yield from each(tuple[Part, ...], q.journal(session=session, turn=turn))
    return tuple(part for parts in calls for part in parts)


def origin(session: SessionId, turn: int) -> Transaction[Address | None]:
    """The address whose account, agent, tools and approvers hold for a turn that is answered nowhere."""
    found = yield from first(str, q.origin_of_turn(session=session, turn=turn))
    return Address.parse(found) if found else None


def ask(asked: Ask, at: Moment) -> Transaction[Asked]:
    """Queue a turn that no arrival brings; asked again under the same key, it is the same turn."""
    known = yield from first(Asked, q.turn_of_call(call=asked.call))
    if known is not None:
        return known
    if asked.kind is TurnKind.ENDING:
        seq = yield from first(int, q.enqueue_ending(session=asked.session))
    else:
        slot = yield from enqueue(asked.session, None, at)
        seq = slot.seq if slot else None
    if seq is None:
        raise Refused(Refusal.CLOSED)
    row = msgspec.structs.asdict(asked) | {"parts": encode_parts(asked.parts)}
    if not (yield q.add_turn(seq=seq, at=at, **row)):
        raise Moved
    yield Wake(Topic.TURNS)
    return Asked(asked.session, seq)


def enqueue(session: SessionId, me: str | None, at: Moment) -> Transaction[Slot | None]:
    """Make room for a turn more; an idle session is held by `me` at once."""
    return (yield from first(Slot, q.enqueue(session=session, me=me, at=at)))


class Sequel(Protocol):
    """Something that is over once the answer to a turn was sent, or can't be; such as a handoff.

    Whoever runs turns and whoever sends know none by its name. They tell it what became of the turn and of its last
    message, and it records the one and the other in one transaction with what that means.
    """

    kind: TurnKind
    """The turns that have it."""
    pace: float
    """Seconds between two words that the answer grows."""

    def grew(self, session: SessionId, turn: int, at: Moment) -> Transaction[None]:
        """The agent says something."""
        ...

    def finish(self, held: Claim, done: Finish, at: Moment) -> Transaction[Finished]:
        """Finish the turn."""
        ...

    def is_over(self, id: str) -> Transaction[bool]:
        """Whether it has come to its end, so that nothing more is to be sent for it; `id` is `Outgoing.sequel`."""
        ...

    def sent(self, held: Outgoing, message: str, at: Moment) -> Transaction[None]:
        """The last message was sent."""
        ...

    def give_up(self, held: Outgoing, error: str, at: Moment) -> Transaction[None]:
        """The last message can't ever be sent."""
        ...


def finish(held: Claim, done: Finish, at: Moment, *, sends: bool = False, last: bool = True) -> Transaction[Finished]:
    """Finish a turn: entries, deliveries, usage and the session's position move together.

    A replica that `sends` takes what may be sent at once.
    """
    if done.back is not None:
        yield from moves.undo(done.back.move, done.back.by, Limits(), done.back.id, at)
    session, name, owed = held.session, done.turns[0], done.owed
    others = {asked.session for asked in done.onward} | ({owed.parent} if owed else set())
    for other in sorted({session, *others}) if others else ():
        yield q.lock_session(session=other)
    stands = yield from _look(held, name)
    before = stands.tip if done.onto is None else done.onto.tip
    tip = yield from transcripts.add(session, before, stands.length, done.drafts, at, name)
    if done.onto is not None:
        yield from _record(session, stands.tip, done.onto, tip, at)
    hidden = yield from _end(session, done, stands, at)
    turns = yield from _move_on(held, done, stands, tip, at)
    replies = yield from _replies(session, done, stands, before, tip)
    if done.kind is TurnKind.SENT and (yield from _kept_back(session, name)):
        replies = ()
    yield from deliveries.reply(session, name, stands.length, replies, at)
    if not replies:
        # With one, the message that it streamed into has its final text.
        yield q.end_streams(at=at, **keys_between(session, name))
    if done.usage or done.reserved:
        yield from _settle(session, done, at)
    if done.state is not None:
        kept, seen = {"session": session, "agent": done.agent, "value": done.state}, nowhere(session) if hidden else tip
        yield q.keep_state(tip_session=seen.session if seen else None, tip=seen.n if seen else None, at=at, **kept)
    if done.beneath or done.onward or owed:
        yield from _tell_others(session, done, None if turns else owed, at)
    take = sends and replies
    taken = yield from (deliveries.take(held, name, replies, last=last) if take else deliveries.offer(replies))
    yield Wake(Topic.SAID, session)
    run = Run(held, turns, tip, owes=owed.parent if owed else None, bound=stands.bound) if turns else None
    return Finished(before, tip, run, hidden, taken)


def _record(session: SessionId, left: Tip | None, onto: Onto, tip: Tip | None, at: Moment) -> Transaction[None]:
    """Keep how a turn moves the tip; somebody may have come to read along while it waited."""
    brings_back = onto.tip if onto.why in (TipMove.REWIND, TipMove.REDO) else None
    if brings_back is not None and (yield from readings.missed(session, PersonId(onto.by), brings_back)):
        raise Refused(Refusal.UNREAD)
    to = tip if onto.why is TipMove.COMPRESS else onto.tip
    yield from transcripts.record(session, left, to, onto.why, onto.by, at)


def _tell_others(session: SessionId, done: Finish, owed: Owed | None, at: Moment) -> Transaction[None]:
    """Write what a turn leaves in other sessions: those beneath it, whom it asks, and whoever waits for its result."""
    yield from _add_beneath(done.beneath, at)
    for asked in done.onward:
        yield from ask(asked, at)
    if owed is not None:
        yield from _conclude(session, done.turns[0], owed, at)


def _look(held: Claim, name: int) -> Transaction[Stands]:
    """A session and its running turn as they stand; all that is written after this stands on it."""
    session, by = held.session, {"session": held.session, "me": held.me, "epoch": held.epoch}
    stands = yield from first(Stands, q.stands(turn=name, **by))
    if stands is None or stands.ended:
        # One that has ended: a commit of which nobody knew whether it happened did happen.
        raise Fenced(f"turn {name} of session {session}")
    now = {"tip_session": stands.tip.session if stands.tip else None, "tip": stands.tip.n if stands.tip else None}
    yield must(q.still_stands(length=stands.length, head=stands.head, tail=stands.tail, **now, **by))
    return stands


class EndedTurn(Value, frozen=True):
    """A turn that has just ended."""

    person: PersonId
    deleted: Moment | None
    """When its author took it back, if they did while it ran."""


def _end(session: SessionId, done: Finish, stands: Stands, at: Moment) -> Transaction[bool]:
    """Mark the turns that are answered, and say whether one was taken back."""
    name, *others = done.turns
    became = {"outcome": done.outcome, "error": done.error, "at": at}
    yield must(q.end_running(session=session, seq=name, deleted=stands.deleted, **became))
    ended = {name: EndedTurn(stands.person, stands.deleted)}
    for seq in others:
        other = yield from first(EndedTurn, q.end_turn(session=session, seq=seq, within=name, **became))
        ended |= {seq: other} if other else {}
    hides = False
    for seq, turn in ended.items():
        if turn.deleted is not None:
            hidden = yield from deletions.entries(session, seq, name)
            yield from deletions.delete(session, hidden, turn.person, turn.deleted)
            hides = True
    return hides


def _move_on(held: Claim, done: Finish, stands: Stands, tip: Tip | None, at: Moment) -> Transaction[tuple[Turn, ...]]:
    """Move a session on to what runs next, or let it go if nothing waits."""
    waits = stands.tail - stands.head > len(done.turns)
    following = (yield from _next(held.session, stands.head)) if waits else ()
    turns = () if stands.gathers else following
    yield must(
        q.finish(
            session=held.session,
            me=held.me,
            epoch=held.epoch,
            turn=done.turns[0],
            head=following[0].seq - 1 if following else stands.tail,
            running=turns[-1].seq if turns else 0,
            tip_session=tip.session if tip else None,
            tip=tip.n if tip else None,
            length=stands.length + len(done.drafts),
            abandoned=stands.abandoned,
            at=at,
        )
    )
    return turns


def _settle(session: SessionId, done: Finish, at: Moment) -> Transaction[None]:
    """Add what a turn has spent, and give back what it reserved and didn't spend."""
    for used in done.usage:
        yield from _spend(session, done.turns[0], used, at)
    if done.reserved:
        yield q.spend(session=session, turns=1, tokens=0, cost=0.0)
        yield q.end_reservation(session=session)


def _spend(session: SessionId, turn: int, used: Usage, at: Moment) -> Transaction[None]:
    """Add what was spent to what a turn has cost, and to the budgets that it reserved from."""
    size = used.input + used.output - used.reasoning
    yield q.add_usage(session=session, turn=turn, size=size, at=at, **msgspec.structs.asdict(used))
    yield q.spend(session=session, turns=0, tokens=used.input + used.output, cost=used.cost or 0.0)


def _add_beneath(sessions: Iterable[Beneath], at: Moment) -> Transaction[None]:
    """Write down what sub-agents did, each in a session of its own."""
    for beneath in sessions:
        yield q.add_beneath(session=beneath.session, parent=beneath.parent, label=beneath.label, at=at)
        yield from transcripts.append(beneath.session, beneath.drafts, at)


def _kept_back(session: SessionId, turn: int) -> Transaction[bool]:
    """Whether somebody waits for this turn's answer; decided here, so that it is delivered or taken and never both."""
    return (yield from first(float, q.keep_back(session=session, seq=turn))) is not None


def _conclude(session: SessionId, turn: int, owed: Owed, at: Moment) -> Transaction[None]:
    """A session has nothing more to do for its one task: it is closed, and its parent is told in a turn."""
    if (yield q.tasks_open(session=session)):
        # What its own children find is asked of it in turns: the last of these is its result.
        return
    label = yield from first(str, q.conclude(session=session, at=at))
    if label is not None:
        yield from tell_parent(session, turn, label, owed, at)


def tell_parent(session: SessionId, turn: int, label: str, owed: Owed, at: Moment) -> Transaction[None]:
    """Ask a parent to take in what its child has found; one that is closed hears nothing, the transcript is kept."""
    parent = yield from one(Addressee, q.standing(session=owed.parent))
    if parent.closed:
        return
    lane, route = None, ""
    if parent.ending is not Ending.ONE_SHOT:
        # What a session says that owes a result itself is for its own parent, not for people.
        lane, route = yield from routes.now(owed.parent, (session, turn))
    yield from ask(
        Ask(
            owed.parent,
            TurnKind.RESULT,
            f"{session}/result",
            (ChildResult((yield from _told(session, owed)), session, label),),
            owed.person,
            lane=lane,
            route=route,
            trace=owed.trace,
            by=session,
            by_turn=turn,
            cause=owed.cause,
        ),
        at,
    )


def _told(session: SessionId, owed: Owed) -> Transaction[str]:
    """The result of a child, unless others read its parent by now who didn't when it was asked for."""
    asked = (yield from first(float, q.first_asked(session=session))) or 0.0
    for place in (yield from readings.widened(owed.parent, PersonId(owed.person), asked)):
        if not (yield from readings.whole(place, session)):
            return KEPT
    return owed.text


def _replies(
    session: SessionId, done: Finish, stands: Stands, before: Tip | None, tip: Tip | None
) -> Transaction[tuple[Reply, ...]]:
    """The replies of a turn, marked where they need it; none where other people read since it was asked."""
    if stands.afresh:
        return ()
    replies = done.replies
    if stands.abandoned or done.kind is TurnKind.SCHEDULED:
        replies = yield from _left(session, done, stands, before, tip)
    return marked(replies, answered_by(stands.label)) if stands.label else replies


def _left(
    session: SessionId, done: Finish, stands: Stands, before: Tip | None, tip: Tip | None
) -> Transaction[tuple[Reply, ...]]:
    """The replies to a place that may have left the session: whoever is there has read on as far as these go.

    If it asked before it left, the last one says which session answered.
    """
    replies = done.replies
    if tip is not None:
        start = {"from_session": before.session if before else None, "n": before.n if before else None}
        yield q.read_on(session=session, turn=done.turns[0], to_session=tip.session, to_n=tip.n, **start)
    if not (stands.abandoned and replies) or done.back is not None:
        return replies
    place = yield from first(Place, q.address(address=replies[-1].address.key))
    private = place is None or place.audience is Audience.ONE
    title = yield from (titles.of(session) if private else titles.of_at(session, replies[-1].address))
    return marked(replies, answered_by(title))


def marked(replies: tuple[Reply, ...], mark: str) -> tuple[Reply, ...]:
    """The replies with a line under the last one, which may be a message more."""
    if not replies:
        return ()
    last = replies[-1]
    if len(last.text) <= _ROOM:
        return (*replies[:-1], msgspec.structs.replace(last, text=f"{last.text}\n\n{mark}".strip()))
    return (*replies, Reply(last.address, mark, 0, last.answers))


def left_behind(held: Claim, turn: int) -> Transaction[None]:
    """Let go of what a turn's end took, if it was committed and nobody heard of it."""
    yield q.let_go(session=held.session, me=held.me, epoch=held.epoch, failed=0, delay=0.0, began=0)
    yield q.give_back(me=held.me, **keys_between(held.session, turn))
    yield Wake(Topic.TURNS)
    yield Wake(Topic.DELIVERIES)


def sum_up(held: Claim, turn: int, summed_up: SummedUp, agent: str | None, by: str, at: Moment) -> Transaction[Tip]:
    """Let a summary stand for all that was said so far, while a turn waits to be answered; returns where it stands."""
    stands = yield from check(held)
    before = stands.tip
    if before is None:
        raise Refused(Refusal.NOTHING_TO_UNDO)
    draft = Draft(GATEWAY, with_swap(Summary(summed_up.text, before.session, before.n), agent))
    yield from transcripts.add(held.session, before, stands.length, [draft], at, turn)
    for used in summed_up.usage:
        yield from _spend(held.session, turn, used, at)
    tip = Tip(held.session, stands.length + 1)
    yield from transcripts.record(held.session, before, tip, TipMove.COMPRESS, by, at)
    yield transcripts.set_tip(held.session, tip, tip.n, at)
    return tip


def stop(session: SessionId, person: PersonId) -> Transaction[bool]:
    """Ask for the end of a person's own running turn; returns whether one runs."""
    stopped = bool((yield q.stop_turns(session=session, person=person)))
    if stopped:
        yield Wake(Topic.LOOK, session)
    return stopped


def stop_anybodys(session: SessionId, by: PersonId) -> Transaction[bool]:
    """Ask the running turn of a session to stop, also if another person asked for it; returns whether one runs."""
    stopped = bool((yield q.stop_all(session=session, person=by)))
    if stopped:
        yield Wake(Topic.LOOK, session)
    return stopped


def left_running(lane: Lane, person: PersonId) -> Transaction[SessionId | None]:
    """The session in which a person's turn runs that was asked for in a lane, though the lane has left it since."""
    return (yield from first(SessionId, q.left_running(lane=(yield from lanes.now(lane)).key, person=person)))


def stopped(session: SessionId) -> Transaction[bool]:
    """Whether somebody asked for the end of the turn that runs."""
    return bool((yield q.stopped_by(session=session)))


def let_go(
    held: Claim,
    failed: int,
    delay: float,
    turn: int = 0,
    spent: Sequence[Usage] = (),
    at: Moment = 0.0,
    *,
    began: bool = True,
) -> Transaction[int]:
    """Give a session back, to be claimed again after a delay; returns how often its turn has failed.

    What the try has cost by then is kept: nobody gets it back. If it `began`, the next one takes the same turns.
    """
    by = {"session": held.session, "me": held.me, "epoch": held.epoch}
    fails = yield from first(int, q.let_go(failed=failed, delay=delay, began=int(began), **by))
    if fails is None:
        raise Fenced(f"session {held.session}")
    for used in spent:
        yield from _spend(held.session, turn, used, at)
    return fails


def check(held: Claim) -> Transaction[Held]:
    """Lock the session, or raise `Fenced` if somebody else holds it."""
    found = yield from first(Held, q.hold(session=held.session, me=held.me, epoch=held.epoch))
    if found is None:
        raise Fenced(f"session {held.session}")
    return found


def lost(held: Claim) -> Transaction[bool]:
    """Whether a session is held by this claim no more."""
    return bool((yield q.lost_session(session=held.session, me=held.me, epoch=held.epoch)))
