"""Dead letters: arrivals that couldn't be taken in, as they came and why; and the keys that tell a redelivery."""

from segue.changes.exchange import deliveries
from segue.changes.rows import each
from segue.core.contracts.database import Transaction
from segue.core.lanes import account_key
from segue.core.messages import Arrival
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


def see(arrival: Arrival, at: Moment) -> Transaction[bool]:
    """Remember an arrival by its keys; returns whether it is new."""
    account, new = account_key(arrival.place.address.platform, arrival.place.address.account), True
    for key in sorted(arrival.keys):
        new = bool((yield q.see(account=account, key=key, at=at))) and new
    return new


def forget(at: Moment) -> Transaction[None]:
    """Forget keys that no platform redelivers any more."""
    yield q.forget_seen(before=at - KEPT, count=1000)


def give_up(arrival: Arrival, why: str, told: str, key: str, at: Moment) -> Transaction[bool]:
    """Make a dead letter of an arrival, and tell its person; returns whether it is new, and it isn't any more."""
    if not (yield from see(arrival, at)):
        return False
    address = arrival.place.address
    yield from bury(account_key(address.platform, address.account), ascii(arrival), why, at)
    if arrival.parts:
        yield from deliveries.notify(address, told, key, (arrival.message,), at)
    return True


def bury(account: str, raw: str, why: str, at: Moment) -> Transaction[None]:
    """Keep an arrival that couldn't be understood, as it came."""
    yield q.add_letter(account=account, raw=raw, why=why, at=at)


def newest(count: int) -> Transaction[list[DeadLetter]]:
    """The arrivals that couldn't be understood, the newest first."""
    return (yield from each(DeadLetter, q.letters(count=count)))
