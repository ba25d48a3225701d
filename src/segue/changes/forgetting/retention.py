"""Retention: sessions that the host keeps no longer are forgotten, unless something of them is still open.

Days are those in which a gateway ran. A start with a clock that is wrong counts as one day more, however wrong it is.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from segue.changes.forgetting import erasure
from segue.changes.forgetting.erasure import Cause, Reason
from segue.changes.rows import each
from segue.changes.run_days import DAY
from segue.core.contracts.database import Transaction
from segue.core.lanes import Kind, Lane
from segue.core.settings import GatewaySettings
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q

NOBODY = PersonId("")


class UnusedRow(Value, frozen=True):
    """A session that nobody has used for a while, and one of the lanes that it was ever spoken to from."""

    id: SessionId
    used: Moment
    lane: Lane | None
    kind: Kind | None


class Unused(Value, frozen=True):
    """A session that nobody has used for a while, and the days for which it is kept."""

    id: SessionId
    used: Moment
    days: int
    """The most that any of its places keeps it; 0 is for ever."""

    def is_over(self, ran: Sequence[int], at: Moment) -> bool:
        """Whether the retention period is over, counted in days on which a gateway ran."""
        since = len(ran) - bisect_right(ran, int(self.used // DAY))
        return bool(self.days) and self.used + self.days * DAY <= at and since >= self.days


def unused(after: str, count: int, settings: GatewaySettings, at: Moment) -> Transaction[list[Unused]]:
    """Sessions that nobody has used for as long as any is kept, by their ids; children go with their parents."""
    before = at - settings.shortest_kept * DAY
    rows = yield from each(UnusedRow, q.unused_sessions(before=before, after=after, count=count))
    by_session: dict[SessionId, list[UnusedRow]] = {}
    for row in rows:
        by_session.setdefault(row.id, []).append(row)
    return [Unused(id, found[0].used, _days(found, settings)) for id, found in by_session.items()]


def _days(rows: Iterable[UnusedRow], settings: GatewaySettings) -> int:
    kept = [settings.kept_days(row.lane, row.kind) for row in rows if row.lane is not None and row.kind is not None]
    kept = kept or [settings.retention.days]
    return max(kept) if all(kept) else 0


def forget(session: Unused, at: Moment) -> Transaction[bool]:
    """Forget a session, unless it was used since or something of it is still open; returns whether it did."""
    yield q.lock_session(session=session.id)
    if (yield q.still_open(session=session.id, used=session.used, at=at)):
        return False
    yield from erasure.session(session.id, Reason(NOBODY, Cause.RETENTION, at))
    return True
