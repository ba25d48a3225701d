"""Retention: sessions that the host keeps no longer are forgotten, unless something of them is still open."""

from segue.changes.forgetting import erasure
from segue.changes.forgetting.erasure import Cause, Reason
from segue.changes.rows import each
from segue.core.contracts.database import Transaction
from segue.core.lanes import Kind, Lane
from segue.core.settings import GatewaySettings
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q

DAY = 86400.0
NOBODY = PersonId("")


class SpokenIn(Value, frozen=True):
    """A lane that a session was ever spoken to from, and the kind of its place."""

    lane: Lane
    kind: Kind


class Unused(Value, frozen=True):
    """A session that nobody has used for a while."""

    id: SessionId
    used: Moment


def unused(before: Moment, after: str, count: int) -> Transaction[list[Unused]]:
    """Sessions that nobody has used since then, by their ids; children go with their parents."""
    return (yield from each(Unused, q.unused_sessions(before=before, after=after, count=count)))


def look(session: Unused, settings: GatewaySettings, at: Moment) -> Transaction[bool]:
    """Forget a session if each of the places where it was spoken to keeps it no longer; returns whether it did."""
    lanes = yield from each(SpokenIn, q.lanes_ever(session=session.id))
    kept = [settings.kept_days(spoken.lane, spoken.kind) for spoken in lanes] or [settings.retention.days]
    if not all(days and session.used + days * DAY <= at for days in kept):
        return False
    yield q.lock_session(session=session.id)
    if (yield q.still_open(session=session.id, used=session.used, at=at)):
        return False
    yield from erasure.session(session.id, Reason(NOBODY, Cause.RETENTION, at))
    return True
