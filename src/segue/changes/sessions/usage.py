"""Usage: what a session's turns have cost so far."""

from __future__ import annotations

from segue.core.contracts.agents import Usage
from segue.core.contracts.database import Transaction
from segue.core.values import SessionId, Value
from segue.database.statements import q


class Spent(Value, frozen=True):
    """What a session has cost with one model."""

    usage: Usage
    turns: int


class Size(Value, frozen=True):
    """How large the last request of a session was, in tokens, and the turn that made it."""

    turn: int
    tokens: int


def last_size(session: SessionId) -> Transaction[Size | None]:
    """The size that the provider last reported."""
    rows = yield q.last_size(session=session)
    return Size(*rows[0]) if rows else None


def spent(session: SessionId) -> Transaction[list[Spent]]:
    """What a session has cost, by model."""
    rows = yield q.usage_of(session=session)
    return [Spent(Usage(*row[:7]), row[7]) for row in rows]
