"""When a lane starts over: one function of the policy, the times and the time zone.

Law: a daily boundary happens once per local date, when the clocks there first show the hour or a later one. Where they
skip the hour it is the first moment after the gap; where they repeat it, the first of the two; a date that is skipped
has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from segue.core.lanes import Kind, Lane
from segue.core.values import Moment, Value
from segue.errors import Invalid


class When(StrEnum):
    """What makes a session end by itself."""

    NONE = "none"
    """Nothing: Segue never forgets silently."""
    IDLE = "idle"
    """Nobody said anything for a while."""
    DAILY = "daily"
    """A set hour has passed since the last word."""
    BOTH = "both"
    """Whichever comes first."""


class Due(StrEnum):
    """Why a reset is due."""

    IDLE = "idle"
    DAILY = "daily"


class Policy(Value, frozen=True):
    """When a session ends by itself."""

    when: When = When.NONE
    idle_minutes: float = 1440
    hour: int = 4
    zone: str = "UTC"

    def __post_init__(self) -> None:
        if not self.idle_minutes > 0:
            raise Invalid("idle_minutes", f"{self.idle_minutes} is not a time", "Give a number of minutes above 0.")
        if not 0 <= self.hour <= 23:
            raise Invalid("hour", f"{self.hour} is not an hour", "Give a whole number from 0 to 23.")
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise Invalid("zone", f"{self.zone!r} is not a time zone", "Give a name such as Europe/Lisbon.") from error


class Policies(Value, frozen=True):
    """The host's policies: a platform's beats that of a lane's kind, which beats the default."""

    default: Policy = Policy()
    kinds: Mapping[str, Policy] = {}
    """By `dm`, `group`, `channel` or `thread`."""
    platforms: Mapping[str, Policy] = {}

    def of(self, lane: Lane, kind: Kind) -> Policy:
        """The policy that holds in a lane."""
        sort = "thread" if lane.address.thread else str(kind)
        return self.platforms.get(lane.address.platform) or self.kinds.get(sort) or self.default


def due(policy: Policy, used: Moment, now: Moment) -> Due | None:
    """Why the session that was last used then is over now; None if it isn't."""
    if policy.when in (When.IDLE, When.BOTH) and now - used >= policy.idle_minutes * 60:
        return Due.IDLE
    if policy.when in (When.DAILY, When.BOTH) and used < boundary(policy, now) <= now:
        return Due.DAILY
    return None


def boundary(policy: Policy, now: Moment) -> Moment:
    """The last daily boundary at or before now."""
    zone = ZoneInfo(policy.zone)
    today = datetime.fromtimestamp(now, zone).date()
    # Tomorrow's may have been: clocks that go back over midnight show a date again that was over.
    for day in (today + timedelta(days=ahead) for ahead in (1, 0, -1, -2)):
        moment = _strikes(datetime.combine(day, time(policy.hour), zone))
        around = (datetime.fromtimestamp(m, zone).date() for m in (moment - 1, moment))
        if moment <= now and day in around:
            return moment
    raise AssertionError("a daily boundary lies within the last three days")


def _strikes(hour: datetime) -> Moment:
    """The first moment when the clocks in its zone show this time or a later one."""
    # fold=0 reads a repeated time as its first pass, and a skipped one with the offset from before the gap; fold=1
    # reads that with the offset from after it. So the gap's end lies between the two.
    before, after = hour.replace(fold=1).timestamp(), hour.timestamp()
    while after - before > 1:
        middle = (before + after) // 2
        if datetime.fromtimestamp(middle, hour.tzinfo).replace(tzinfo=None) < hour.replace(tzinfo=None):
            before = middle
        else:
            after = middle
    return after
