"""Dead letters: arrivals that couldn't be taken in, as they came and why; and the keys that tell a redelivery."""

import msgspec

from segue.changes import settings
from segue.changes.rows import each
from segue.core.contracts.database import Transaction
from segue.core.values import Moment, Value
from segue.database.statements import q

DAYS = 8
"""Days in which a gateway ran for which a redelivery is known: one more than the most patient platform tries."""
_DAY = 86400.0
AT_ONCE = 2000
MOST = 1000
"""Dead letters of strangers that are kept of an account."""
_KEPT = 30 * _DAY
_RAN = "days"
_FORGOTTEN = "letters forgotten/"


class DeadLetter(Value, frozen=True):
    """An arrival that couldn't be understood, as it came, and why."""

    id: int
    account: str
    raw: str
    why: str
    at: Moment


def forget(at: Moment) -> Transaction[bool]:
    """Forget some keys that no platform redelivers any more; returns whether there may be more of them.

    Days in which no gateway ran don't count, and a clock that jumps brings one day more at most.
    """
    days = set(msgspec.json.decode((yield from settings.once(_RAN, "[]")), type=list[int]))
    if (today := int(at // _DAY)) not in days:
        days.add(today)
        yield q.set_setting(name=_RAN, value=msgspec.json.encode(sorted(days)[-DAYS - 1 :]).decode())
    if len(days) <= DAYS:
        return False
    before = sorted(days)[-DAYS] * _DAY
    return len((yield q.forget_seen(before=before, count=AT_ONCE))) == AT_ONCE


def forget_strangers(account: str, at: Moment) -> Transaction[int]:
    """Forget dead letters of strangers that are a month old, and all but the newest; returns how many that were."""
    gone = len((yield q.forget_letters(account=account, before=at - _KEPT, most=MOST)))
    if gone:
        before = int((yield from settings.once(f"{_FORGOTTEN}{account}", "0")))
        yield q.set_setting(name=f"{_FORGOTTEN}{account}", value=str(before + gone))
    return gone


def bury(account: str, raw: str, why: str, at: Moment, known: int = 0) -> Transaction[None]:
    """Keep an arrival that couldn't be understood, as it came; `known` is 1 if the host knows its person."""
    yield q.add_letter(account=account, raw=raw, why=why, at=at, known=known)


def newest(count: int) -> Transaction[list[DeadLetter]]:
    """The arrivals that couldn't be understood, the newest first."""
    return (yield from each(DeadLetter, q.letters(count=count)))
