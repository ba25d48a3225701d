"""Traces: the path of a message, from the moment it came in to each thing that was sent because of it."""

from enum import StrEnum

from segue.changes.exchange.deliveries import keys_between
from segue.changes.exchange.quotes import MessageTurn
from segue.changes.places import lanes
from segue.changes.rows import each, first
from segue.core.contracts.database import Transaction
from segue.core.lanes import Lane
from segue.core.moves import Why
from segue.core.turns import Outcome
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


class TurnRow(Value, frozen=True):
    """A turn as the database keeps it."""

    session: SessionId
    seq: int
    kind: str
    lane: str | None
    name: str
    accepted: Moment
    outcome: Outcome | None
    finished: Moment | None
    within: int
    error: str | None
    running: bool


class DeliveryRow(Value, frozen=True):
    """A delivery as the database keeps it."""

    session: SessionId | None
    turn: int
    address: str
    accepted: Moment
    attempts: int
    message: str | None
    sent: Moment | None
    dead: Moment | None
    holder: str | None
    streaming: int | None
    error: str | None

    @property
    def state(self) -> SendState:
        """How far it has come."""
        if self.sent is not None:
            return SendState.SENT
        if self.dead is not None:
            return SendState.DEAD
        if self.streaming is not None:
            return SendState.STREAMING
        return SendState.WAITING if self.holder is None else SendState.SENDING


class Ruling(Value, frozen=True):
    """Why a lane spoke to a session, and since when."""

    why: Why
    since: Moment


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
    """Messages that Segue itself sent under this id, without a turn."""


def of_message(message: str) -> Transaction[Trace]:
    """The path of a message, whether a person sent it or Segue did."""
    became = yield from each(TurnRow, q.turns_of_message(message=message, count=_MOST))
    sent = yield from each(DeliveryRow, q.deliveries_of_message(message=message, count=_MOST))
    for session, turn in dict.fromkeys((row.session, row.turn) for row in sent if row.session is not None):
        became += yield from each(TurnRow, q.traced_turn(session=session, turn=turn))
    turns: list[TracedTurn] = []
    for row in {(row.session, row.seq): row for row in became}.values():
        turns += [(yield from _turn(row))]
    notices = tuple(_delivery(row) for row in sent if row.session is None)
    nothing = not turns and not notices
    seen = (yield from each(Seen, q.seen_message(message=message, count=_MOST))) if nothing else []
    return Trace(message, tuple(turns), tuple(seen), notices)


def became(message: str) -> Transaction[TracedTurn | None]:
    """The turn that a message became."""
    row = yield from first(TurnRow, q.turns_of_message(message=message, count=1))
    return (yield from _turn(row)) if row is not None else None


def in_lane(lane: Lane, message: str) -> Transaction[Trace | None]:
    """The path of a message of a lane, or of the last that was said there; None if the lane has no such message."""
    here = yield from lanes.now(lane)
    session, turn = yield from (_turn_behind(here, message) if message else _last_turn(here))
    if session is None or turn is None:
        return None
    trace = yield from of_turn(session, turn)
    return trace if trace.turns and trace.turns[0].lane == here.key else None


def _last_turn(here: Lane) -> Transaction[tuple[SessionId | None, int | None]]:
    """The last thing that was said in a lane."""
    session = yield from lanes.speaks_to(here)
    return session, (yield from first(int, q.last_turn_of(session=session, lane=here.key)))


def _turn_behind(here: Lane, message: str) -> Transaction[tuple[SessionId | None, int | None]]:
    """The turn that a message of a lane became, or that sent it."""
    turn = yield from first(MessageTurn, q.turn_at(message=message, address=here.address.key))
    if turn is not None:
        return turn.session, turn.seq
    sent = yield from each(DeliveryRow, q.deliveries_of_message(message=message, count=_MOST))
    there = [(row.session, row.turn) for row in sent if row.session is not None and row.address == here.address.key]
    return there[-1] if there else (None, None)


def of_turn(session: SessionId, turn: int) -> Transaction[Trace]:
    """The path of what became a turn."""
    row = yield from first(TurnRow, q.traced_turn(session=session, turn=turn))
    return Trace("", ((yield from _turn(row)),) if row else ())


def notices(session: SessionId, turn: int) -> Transaction[list[str]]:
    """Notices of a turn that are in no transcript."""
    return (yield from each(str, q.notices_of_turn(**keys_between(session, turn))))


def _turn(row: TurnRow) -> Transaction[TracedTurn]:
    bound = yield from first(Ruling, q.binding_at(lane=row.lane, session=row.session, at=row.accepted))
    deliveries = yield from each(DeliveryRow, q.deliveries_of_turn(**keys_between(row.session, row.within)))
    return TracedTurn(
        row.session,
        row.seq,
        row.kind,
        row.lane,
        row.name,
        row.accepted,
        bound.why if bound else None,
        bound.since if bound else None,
        TurnState(row.outcome) if row.outcome else TurnState.RUNNING if row.running else TurnState.QUEUED,
        row.finished,
        row.within,
        row.error,
        tuple(map(_delivery, deliveries)),
    )


def _delivery(row: DeliveryRow) -> TracedDelivery:
    at = row.dead if row.sent is None else row.sent
    return TracedDelivery(row.address, row.state, row.attempts, row.message, row.accepted, at, row.error)
