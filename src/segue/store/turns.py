"""Turns: claimed by a holder, journaled while they run, finished in one fenced transaction."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, StrEnum
from itertools import takewhile

import msgspec

from segue.core.contracts import Row, Transaction, Usage
from segue.core.lanes import Address, account_key
from segue.core.messages import Parts, decode_parts, encode_parts
from segue.core.transcripts import Draft, Tip, TipMove
from segue.core.turns import TurnKind
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.errors import Fenced, Refusal, Refused
from segue.store import transcripts
from segue.store.rows import tip_of
from segue.store.statements import q
from segue.store.transactions import Moved

_MOST_TOGETHER = 100


class Claim(Value, frozen=True):
    """The right to run a session's turns: every write carries its epoch."""

    session: SessionId
    me: str
    epoch: int


class Turn(Value, frozen=True):
    """One piece of work for the agent, waiting or running."""

    session: SessionId
    seq: int
    kind: TurnKind
    lane: str | None
    route: str
    person: str
    name: str
    message: str
    quotes: str
    parts: Parts
    accepted: Moment
    trace: str
    identity: str = ""
    """As whom its person said it; empty if nobody did."""


class Outcome(StrEnum):
    """What became of a turn."""

    ANSWERED = "answered"
    FAILED = "failed"
    STOPPED = "stopped"
    WITHDRAWN = "withdrawn"


class Streamed(Enum):
    """Whether a turn, or an earlier attempt at it, opened a message to stream into."""

    YES = "yes"
    NO = "no"


class Reply(Value, frozen=True):
    """A message that a turn sends when it is done."""

    address: Address
    text: str
    entry: int
    """Which of the turn's entries it shows, counted from 1; 0 for none."""
    answers: tuple[str, ...] = ()


class Onto(Value, frozen=True):
    """Where a turn moves the tip before it adds its entries, why, and who asked for it."""

    tip: Tip | None
    why: TipMove
    by: str


class Ask(Value, frozen=True):
    """A turn that no arrival brings: asked of a session by its id."""

    session: SessionId
    kind: TurnKind
    call: str
    """Its key: asked again, it is the same turn."""
    parts: Parts
    person: str
    """On whose behalf."""
    name: str = ""
    lane: str | None = None
    route: str = ""
    """The key of the address that its answer goes to; empty if nobody is to be told."""
    trace: str = ""


class Asked(Value, frozen=True):
    """The turn that an ask made when it was first run."""

    session: SessionId
    turn: int
    outcome: str | None = None


class Finish(Value, frozen=True):
    """All that a turn leaves behind; it is written together or not at all."""

    turns: tuple[int, ...]
    """The turns that this answers; the first one names it."""
    drafts: tuple[Draft, ...]
    replies: tuple[Reply, ...] = ()
    usage: tuple[Usage, ...] = ()
    outcome: Outcome = Outcome.ANSWERED
    error: str | None = None
    streamed: Streamed = Streamed.NO
    onto: Onto | None = None
    onward: tuple[Ask, ...] = ()
    """What it asks of other sessions."""


class Run(Value, frozen=True):
    """Turns to be answered as one: a claim on their session, and what somebody had waiting there."""

    held: Claim
    turns: tuple[Turn, ...]
    tip: Tip | None
    """Where the session ends before they are answered."""
    fails: int = 0
    """How often the agent failed at them."""
    deaths: int = 0
    """How often the process died over them."""
    journal: Parts = ()
    """Tool calls that an earlier attempt finished, with their results."""
    streamed: Streamed = Streamed.NO

    @property
    def name(self) -> int:
        """The number that the turn goes by, the same for every attempt at it."""
        return self.turns[0].seq


class Finished(Value, frozen=True):
    """How a turn left its session."""

    before: Tip | None
    """Where its entries were added."""
    tip: Tip | None
    next: Run | None
    """What runs next; None if nothing waits, and the session was let go."""


def together(waiting: Sequence[Turn]) -> tuple[Turn, ...]:
    """What is answered as one: the first that waits, and all that its person said right after it in the same lane."""
    if not waiting:
        return ()
    first = waiting[0]
    if first.kind is not TurnKind.ARRIVAL:
        return (first,)
    return tuple(takewhile(lambda t: (t.kind, t.person, t.lane) == (first.kind, first.person, first.lane), waiting))


def claim(me: str, count: int) -> Transaction[list[Run]]:
    """Take sessions that have turns and no holder."""
    rows = yield q.claim(me=me, count=count)
    runs = []
    for id, epoch, head, tip_session, tip, fails, deaths in rows:
        turns = yield from _next(id, head)
        if not turns:
            yield q.nothing_waits(session=id)
            continue
        yield q.set_running(session=id, running=turns[-1].seq)
        done = yield from journaled(id, turns[0].seq)
        first, last = keys_between(id, turns[0].seq)
        streams = yield q.streams_of(first=first, last=last)
        streamed = Streamed.YES if streams else Streamed.NO
        claimed = Claim(id, me, epoch)
        runs.append(Run(claimed, turns, tip_of(tip_session, tip), fails, deaths, done, streamed))
    return runs


def waiting(session: SessionId, count: int) -> Transaction[list[Turn]]:
    """The turns of a session that nobody has answered, the running one first."""
    rows = yield q.waiting(session=session, head=0, count=count)
    return [turn_of(session, row) for row in rows]


def _next(session: SessionId, head: int) -> Transaction[tuple[Turn, ...]]:
    rows = yield q.waiting(session=session, head=head, count=_MOST_TOGETHER)
    return together([turn_of(session, row) for row in rows])


def turn_of(session: SessionId, row: Row) -> Turn:
    """A turn from a row of the `waiting` query."""
    seq, kind, lane, route, person, name, message, quotes, parts, *rest = row
    return Turn(session, seq, TurnKind(kind), lane, route, person, name, message, quotes, decode_parts(parts), *rest)


def journal(held: Claim, turn: int, call: str, parts: Parts, at: Moment) -> Transaction[None]:
    """Keep a finished tool call of a running turn, so that a retry sees it."""
    yield from _held(held)
    text = encode_parts(parts)
    yield q.add_journal(session=held.session, turn=turn, call=call, epoch=held.epoch, parts=text, at=at)


def journaled(session: SessionId, turn: int) -> Transaction[Parts]:
    """The finished tool calls of a turn and their results, in order."""
    rows = yield q.journal(session=session, turn=turn)
    return tuple(part for _, parts in rows for part in decode_parts(parts))


def ask(asked: Ask, at: Moment) -> Transaction[Asked]:
    """Queue a turn that no arrival brings; asked again under the same key, it is the same turn."""
    rows = yield q.turn_of_call(call=asked.call)
    if rows:
        return Asked(*rows[0])
    queued = yield q.enqueue(session=asked.session, me=None, at=at)
    if not queued:
        raise Refused(Refusal.CLOSED)
    added = yield q.add_turn(
        session=asked.session,
        seq=queued[0][0],
        kind=asked.kind,
        call=asked.call,
        lane=asked.lane,
        route=asked.route,
        person=asked.person,
        name=asked.name,
        parts=encode_parts(asked.parts),
        at=at,
        trace=asked.trace,
    )
    if not added:
        raise Moved
    return Asked(asked.session, queued[0][0])


def finish(held: Claim, done: Finish, at: Moment) -> Transaction[Finished]:
    """Finish a turn: entries, deliveries, usage and the session's position move together."""
    for other in sorted({held.session, *(asked.session for asked in done.onward)}) if done.onward else ():
        yield q.lock_session(session=other)
    before, length, head, tail = yield from _held(held)
    session, name = held.session, done.turns[0]
    if done.onto is not None:
        yield from transcripts.record(session, before, done.onto.tip, done.onto.why, done.onto.by, at)
        before = done.onto.tip
    tip = yield from transcripts.add(session, before, length, done.drafts, at, name)
    for seq in done.turns:
        within = None if seq == name else name
        ended = yield q.end_turn(session=session, seq=seq, outcome=done.outcome, within=within, error=done.error, at=at)
        if not ended and seq == name:
            # A commit of which nobody knew whether it happened did happen.
            raise Fenced(f"turn {name} of session {session}")
    turns = (yield from _next(session, head)) if tail - head > len(done.turns) else ()
    rows = yield q.finish(
        session=session,
        me=held.me,
        epoch=held.epoch,
        head=turns[0].seq - 1 if turns else tail,
        running=turns[-1].seq if turns else 0,
        tip_session=tip.session if tip else None,
        tip=tip.n if tip else None,
        length=length + len(done.drafts),
        at=at,
    )
    if not rows:
        raise Fenced(f"session {session}")
    yield from _reply(session, name, length, done.replies, at)
    if done.streamed is Streamed.YES or not done.replies:
        first, last = keys_between(session, name)
        yield q.end_streams(first=first, last=last, at=at)
    for used in done.usage:
        yield q.add_usage(session=session, turn=name, at=at, **msgspec.structs.asdict(used))
    for asked in done.onward:
        yield from ask(asked, at)
    return Finished(before, tip, Run(held, turns, tip) if turns else None)


def _reply(session: SessionId, name: int, length: int, replies: tuple[Reply, ...], at: Moment) -> Transaction[None]:
    for address in sorted({reply.address.key for reply in replies}):
        # Deliveries to one address get their numbers in the order of their commits.
        yield q.hold_name(name=address)
    for part, reply in enumerate(replies):
        yield q.add_delivery(
            key=delivery_key(session, name, part),
            account=account_key(reply.address.platform, reply.address.account),
            address=reply.address.key,
            session=session,
            turn=name,
            entry=length + reply.entry if reply.entry else 0,
            text=reply.text,
            answers=msgspec.json.encode(reply.answers).decode(),
            choices="[]",
            files="[]",
            at=at,
        )


def delivery_key(session: SessionId, turn: int, part: int) -> str:
    """The key of a turn's delivery, the same for every attempt."""
    return f"{session}/{turn}/{part}"


def keys_between(session: SessionId, turn: int) -> tuple[str, str]:
    """Two strings between which all keys of a turn's deliveries lie: `0` follows `/`."""
    return f"{session}/{turn}/", f"{session}/{turn}0"


def stop(session: SessionId, person: PersonId) -> Transaction[bool]:
    """Ask for the end of a person's own running turn; returns whether one runs."""
    rows = yield q.stop_turns(session=session, person=person)
    return bool(rows)


def stopped(session: SessionId) -> Transaction[bool]:
    """Whether somebody asked for the end of the turn that runs."""
    rows = yield q.stopped_by(session=session)
    return bool(rows)


def let_go(held: Claim, failed: int, delay: float) -> Transaction[int]:
    """Give a session back, to be claimed again after a delay; returns how often its turn has failed."""
    rows = yield q.let_go(session=held.session, me=held.me, epoch=held.epoch, failed=failed, delay=delay)
    if not rows:
        raise Fenced(f"session {held.session}")
    return int(rows[0][0])


def check(held: Claim) -> Transaction[None]:
    """Hold the session, or raise `Fenced` if somebody else does."""
    yield from _held(held)


def _held(held: Claim) -> Transaction[tuple[Tip | None, int, int, int]]:
    """Lock the session, if this claim on it still holds."""
    rows = yield q.hold(session=held.session, me=held.me, epoch=held.epoch)
    if not rows:
        raise Fenced(f"session {held.session}")
    tip_session, tip, length, head, tail = rows[0]
    return tip_of(tip_session, tip), length, head, tail
