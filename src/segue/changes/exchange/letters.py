"""Dead letters: arrivals that couldn't be taken in, as they came and why; and the keys that tell a redelivery."""

from segue.changes.rows import each
from segue.core.contracts.database import Transaction
from segue.core.values import Moment, Value
from segue.database.statements import q

KEPT = 8 * 86400.0
"""Seconds for which a redelivery is known: a day more than the most patient platform tries."""


class DeadLetter(Value, frozen=True):
    """An arrival that couldn't be understood, as it came, and why."""

    id: int
    account: str
    raw: str
    why: str
    at: Moment


def forget(at: Moment) -> Transaction[None]:
    """Forget keys that no platform redelivers any more."""
    yield q.forget_seen(before=at - KEPT, count=1000)


def bury(account: str, raw: str, why: str, at: Moment) -> Transaction[None]:
    """Keep an arrival that couldn't be understood, as it came."""
    yield q.add_letter(account=account, raw=raw, why=why, at=at)


def newest(count: int) -> Transaction[list[DeadLetter]]:
    """The arrivals that couldn't be understood, the newest first."""
    return (yield from each(DeadLetter, q.letters(count=count)))
