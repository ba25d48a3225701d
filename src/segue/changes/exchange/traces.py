"""Traces: the path of a message, from the moment it came in to each thing that was sent because of it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from segue.changes.exchange.turns import keys_between
from segue.changes.places import lanes
from segue.core.contracts.database import Row, Transaction
from segue.core.lanes import Lane
from segue.core.moves import Why
from segue.core.values import Moment, SessionId, Value
from segue.database.statements import q

_MOST = 100


class TurnState(StrEnum):
    """How far a turn has come."""

    QUEUED = "queued"
    RUNNING = "running"
    ANSWERED = "answered"
    FAILED = "failed"
    STOPPED = "stopped"
    WITHDRAWN = "withdrawn"


class SendState(StrEnum):
    """How far a delivery has come."""

    WAITING = "waiting"
    SENDING = "sending"
    STREAMING = "streaming"
    """It grows while its turn runs."""
    SENT = "sent"
    DEAD = "dead"
    """It can't ever be sent."""


class TracedDelivery(Value, frozen=True):
    """One thing to be sent, and what became of it."""

    address: str
    state: SendState
    attempts: int
    message: str | None
    """The platform's id of it."""
    accepted: Moment
    at: Moment | None
    """When it was sent, or given up."""
    error: str | None


class TracedTurn(Value, frozen=True):
    """The turn that a message became: where, by which rule, and what became of it."""

    session: SessionId
    turn: int
    kind: str
    lane: str | None
    name: str
    """The speaker's, as it was shown then."""
    accepted: Moment
    why: Why | None
    """Why the lane spoke to that session."""
    since: Moment | None
    state: TurnState
    finished: Moment | None
    within: int
    """The turn that answered it: another one, if several messages were answered as one."""
    error: str | None
    deliveries: tuple[TracedDelivery, ...]


class Seen(Value, frozen=True):
    """A message that came in and became no turn: a command, an edit, or one that was refused."""

    account: str
    at: Moment


class Trace(Value, frozen=True):
    """All that is known of the messages with one id; every platform counts its own."""

    message: str
    turns: tuple[TracedTurn, ...] = ()
    seen: tuple[Seen, ...] = ()
    notices: tuple[TracedDelivery, ...] = ()
    """What Segue itself sent under this id, without a turn."""


def of_message(message: str) -> Transaction[Trace]:
    """The path of a message, whether a person sent it or Segue did."""
    rows = list((yield q.turns_of_message(message=message, count=_MOST)))
    sent = yield q.deliveries_of_message(message=message, count=_MOST)
    for session, turn in dict.fromkeys((row[0], row[1]) for row in sent if row[0] is not None):
        rows += yield q.traced_turn(session=session, turn=turn)
    turns: list[TracedTurn] = []
    for row in {(row[0], row[1]): row for row in rows}.values():
        turns += [(yield from _turn(row))]
    notices = tuple(_delivery(row) for row in sent if row[0] is None)
    seen = () if turns or notices else (yield q.seen_message(message=message, count=_MOST))
    return Trace(message, tuple(turns), tuple(Seen(*row) for row in seen), notices)


def in_lane(lane: Lane, message: str) -> Transaction[Trace | None]:
    """The path of a message of a lane, or of the last that was said there; None if the lane has no such message."""
    here = yield from lanes.now(lane)
    rows: Sequence[Row]
    if not message:
        bound = yield q.bound(lane=here.key)
        session = bound[0][0] if bound else None
        turns = (yield q.last_turn_of(session=session, lane=here.key)) if session is not None else []
        rows = [(session, turn) for (turn,) in turns]
    else:
        rows = yield q.turn_at(message=message, address=here.address.key)
        if not rows:
            sent = yield q.deliveries_of_message(message=message, count=_MOST)
            rows = [row for row in sent if row[0] is not None and row[2] == here.address.key]
    if not rows:
        return None
    trace = yield from of_turn(rows[-1][0], rows[-1][1])
    return trace if trace.turns and trace.turns[0].lane == here.key else None


def of_turn(session: SessionId, turn: int) -> Transaction[Trace]:
    """The path of what became a turn."""
    rows = yield q.traced_turn(session=session, turn=turn)
    turns: list[TracedTurn] = []
    for row in rows:
        turns += [(yield from _turn(row))]
    return Trace("", tuple(turns))


def notices(session: SessionId, turn: int) -> Transaction[list[str]]:
    """What a turn said that is in no transcript."""
    first, last = keys_between(session, turn)
    rows = yield q.notices_of_turn(first=first, last=last)
    return [text for (text,) in rows]


def _turn(row: Row) -> Transaction[TracedTurn]:
    session, seq, kind, lane, name, accepted, outcome, finished, within, error, running = row
    bindings: Sequence[Row] = (yield q.binding_at(lane=lane, session=session, at=accepted)) if lane else ()
    why, since = (Why(bindings[0][0]), bindings[0][1]) if bindings else (None, None)
    first, last = keys_between(session, within or seq)
    deliveries = yield q.deliveries_of_turn(first=first, last=last)
    return TracedTurn(
        session,
        seq,
        kind,
        lane,
        name,
        accepted,
        why,
        since,
        TurnState(outcome) if outcome else TurnState.RUNNING if running else TurnState.QUEUED,
        finished,
        within or seq,
        error,
        tuple(_delivery(row) for row in deliveries),
    )


def _delivery(row: Row) -> TracedDelivery:
    _, _, address, accepted, attempts, message, sent, dead, holder, streaming, error = row
    at = dead if sent is None else sent
    return TracedDelivery(address, _state(sent, dead, holder, streaming), attempts, message, accepted, at, error)


def _state(sent: Moment | None, dead: Moment | None, holder: str | None, streaming: int | None) -> SendState:
    if sent is not None:
        return SendState.SENT
    if dead is not None:
        return SendState.DEAD
    if streaming is not None:
        return SendState.STREAMING
    return SendState.WAITING if holder is None else SendState.SENDING
