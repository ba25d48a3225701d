"""Turns: claimed by a holder, journaled while they run, finished in one fenced transaction."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from segue.core.contracts import Row, Transaction
from segue.core.lanes import Address, account_key
from segue.core.messages import Parts, decode_parts, encode_parts
from segue.core.transcripts import Draft, Tip
from segue.core.values import Moment, SessionId, Value
from segue.errors import Fenced
from segue.store import transcripts
from segue.store.rows import tip_of
from segue.store.statements import q


class Claim(Value, frozen=True):
    """The right to run a session's turns: every write carries its epoch."""

    session: SessionId
    me: str
    epoch: int
    head: int


class Turn(Value, frozen=True):
    """One piece of work for the agent, waiting or running."""

    session: SessionId
    seq: int
    kind: str
    lane: str | None
    route: str
    person: str
    name: str
    message: str
    quotes: str
    parts: Parts
    accepted: Moment
    trace: str


class Outcome(StrEnum):
    """What became of a turn."""

    ANSWERED = "answered"
    FAILED = "failed"
    STOPPED = "stopped"
    WITHDRAWN = "withdrawn"


class Reply(Value, frozen=True):
    """A message that a turn sends when it is done."""

    address: Address
    text: str
    entry: int
    """Which of the turn's entries it shows, counted from 1; 0 for none."""
    answers: tuple[str, ...] = ()


class Usage(Value, frozen=True):
    """What a turn cost."""

    model: str
    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float | None = None


class Finish(Value, frozen=True):
    """All that a turn leaves behind; it is written together or not at all."""

    turns: tuple[int, ...]
    """The turns that this answers, the last one last."""
    drafts: tuple[Draft, ...]
    replies: tuple[Reply, ...] = ()
    usage: tuple[Usage, ...] = ()
    outcome: Outcome = Outcome.ANSWERED
    error: str | None = None


def claim(me: str, count: int) -> Transaction[list[Claim]]:
    """Take sessions that have turns and no holder."""
    rows = yield q.claim(me=me, count=count)
    return [Claim(id, me, epoch, head) for id, epoch, head in rows]


def waiting(session: SessionId, head: int, count: int) -> Transaction[list[Turn]]:
    """The turns of a session that wait, in order."""
    rows = yield q.waiting(session=session, head=head, count=count)
    return [turn_of(session, row) for row in rows]


def turn_of(session: SessionId, row: Row) -> Turn:
    """A turn from a row of the `waiting` query."""
    seq, kind, lane, route, person, name, message, quotes, parts, accepted, trace = row
    return Turn(session, seq, kind, lane, route, person, name, message, quotes, decode_parts(parts), accepted, trace)


def journal(held: Claim, turn: int, call: str, parts: Parts, at: Moment) -> Transaction[None]:
    """Keep a finished tool call of a running turn, so that a retry sees it."""
    yield from _held(held)
    text = encode_parts(parts)
    yield q.add_journal(session=held.session, turn=turn, call=call, epoch=held.epoch, parts=text, at=at)


def journaled(session: SessionId, turn: int) -> Transaction[list[tuple[str, Parts]]]:
    """The finished tool calls of a turn, in order."""
    rows = yield q.journal(session=session, turn=turn)
    return [(call, decode_parts(parts)) for call, parts in rows]


def finish(held: Claim, done: Finish, at: Moment) -> Transaction[bool]:
    """Finish a turn: entries, deliveries, usage and the session's position move together.

    Returns whether more turns wait; the session is still held then.
    """
    tip, length = yield from _held(held)
    upto = done.turns[-1]
    session = held.session
    tip = yield from transcripts.add(session, tip, length, done.drafts, at, upto)
    rows = yield q.finish(
        session=session,
        me=held.me,
        epoch=held.epoch,
        upto=upto,
        tip_session=tip.session if tip else None,
        tip=tip.n if tip else None,
        length=length + len(done.drafts),
        at=at,
    )
    if not rows:
        raise Fenced(f"session {session}")
    for seq in done.turns:
        within = None if seq == upto else upto
        yield q.end_turn(session=session, seq=seq, outcome=done.outcome, within=within, error=done.error, at=at)
    for part, reply in enumerate(done.replies):
        yield q.add_delivery(
            key=f"{session}/{upto}/{part}",
            account=account_key(reply.address.platform, reply.address.account),
            address=reply.address.key,
            session=session,
            turn=upto,
            entry=length + reply.entry if reply.entry else 0,
            text=reply.text,
            answers=msgspec.json.encode(reply.answers).decode(),
            at=at,
        )
    for used in done.usage:
        yield q.add_usage(session=session, turn=upto, at=at, **msgspec.structs.asdict(used))
    return bool(rows[0][0] > upto)


def let_go(held: Claim, failed: int, delay: float) -> Transaction[int]:
    """Give a session back, to be claimed again after a delay; returns how often its turn has failed."""
    rows = yield q.let_go(session=held.session, me=held.me, epoch=held.epoch, failed=failed, delay=delay)
    if not rows:
        raise Fenced(f"session {held.session}")
    return int(rows[0][0])


def _held(held: Claim) -> Transaction[tuple[Tip | None, int]]:
    """Lock the session, if this claim on it still holds."""
    rows = yield q.hold(session=held.session, me=held.me, epoch=held.epoch)
    if not rows:
        raise Fenced(f"session {held.session}")
    tip_session, tip, length, _, _ = rows[0]
    return tip_of(tip_session, tip), length
