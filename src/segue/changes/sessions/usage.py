"""Usage: what a session's turns have cost so far."""

from segue.changes.rows import each, first
from segue.core.contracts.agents import Usage
from segue.core.contracts.database import Transaction
from segue.core.values import SessionId, Value
from segue.database.statements import q


class Spent(Value, frozen=True):
    """The cost of a session with one model."""

    usage: Usage
    turns: int


class Size(Value, frozen=True):
    """The size of a session's last request, in tokens, and the turn that made it."""

    turn: int
    tokens: int


def last_size(session: SessionId) -> Transaction[Size | None]:
    """The size that the provider last reported."""
    return (yield from first(Size, q.last_size(session=session)))


def spent(session: SessionId) -> Transaction[list[Spent]]:
    """The cost of a session, by model."""
    return (yield from each(Spent, q.usage_of(session=session)))
