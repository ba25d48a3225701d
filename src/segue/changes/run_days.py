"""Days in which a gateway ran: age is counted by them, so that a clock that was wrong once makes nothing old."""

import msgspec

from segue.changes import settings
from segue.core.contracts.database import Transaction
from segue.core.values import Moment
from segue.database.statements import q

DAY = 86400.0
_NAME = "days"
_MOST = 4000
"""Days that are kept: some eleven years."""


def count(at: Moment) -> Transaction[tuple[int, ...]]:
    """Count today; returns the days since 1970 in which a gateway ran, in order."""
    days = set(msgspec.json.decode((yield from settings.once(_NAME, "[]")), type=list[int]))
    if (today := int(at // DAY)) not in days:
        days.add(today)
        yield q.set_setting(name=_NAME, value=msgspec.json.encode(sorted(days)[-_MOST:]).decode())
    return tuple(sorted(days))


def begin_daily(name: str, at: Moment) -> Transaction[bool]:
    """Begin work that is done once a day, by whichever replica comes first; returns whether it is due."""
    last = float((yield from settings.once(f"daily/{name}", "0")))
    if last <= at < last + DAY:
        return False
    yield q.set_setting(name=f"daily/{name}", value=str(at))
    return True
