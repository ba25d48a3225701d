"""When a lane starts over: one function of the policy, the times and the time zone.

Law: a daily boundary happens once per local date, when the clocks there first show the hour or a later one. Where they
skip the hour it is the first moment after the gap; where they repeat it, the first of the two; a date that is skipped
has none.
"""

from collections.abc import Mapping
from datetime import datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from segue.core.lanes import Kind, Lane
from segue.core.values import Moment, Value
from segue.errors import Invalid


class When(StrEnum):
    """The reason for which a session ends by itself."""

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


def time_zone(name: str) -> ZoneInfo:
    """The time zone of a name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Invalid("zone", f"{name!r} is not a time zone", "Give a name such as Europe/Lisbon.") from error


class Policy(Value, frozen=True):
    """When a session ends by itself."""

    when: When = When.NONE
    idle_minutes: float = 1440
    hour: int = 4
    zone: str = "UTC"
    notice: bool = False
    """Whether the people there are told that they are in a new session, and how to go back."""

    def __post_init__(self) -> None:
        if not self.idle_minutes > 0:
            raise Invalid("idle_minutes", f"{self.idle_minutes} is not a time", "Give a number of minutes above 0.")
        if not 0 <= self.hour <= 23:
            raise Invalid("hour", f"{self.hour} is not an hour", "Give a whole number from 0 to 23.")
        time_zone(self.zone)


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

    @property
    def resets(self) -> bool:
        """Whether a session can end by itself anywhere."""
        every = (self.default, *self.kinds.values(), *self.platforms.values())
        return any(policy.when is not When.NONE for policy in every)


def due(policy: Policy, used: Moment, now: Moment) -> Due | None:
    """Why the session that was last used then is over now; None if it isn't."""
    if policy.when in (When.IDLE, When.BOTH) and now - used >= policy.idle_minutes * 60:
        return Due.IDLE
    if policy.when in (When.DAILY, When.BOTH) and used < boundary(policy, now) <= now:
        return Due.DAILY
    return None


def ends(policy: Policy, used: Moment) -> Moment | None:
    """When the session that was last used then is over if nobody says anything more; None if never."""
    moments = []
    if policy.when in (When.IDLE, When.BOTH):
        moments.append(used + policy.idle_minutes * 60)
    if policy.when in (When.DAILY, When.BOTH):
        moments.append(next(moment for moment in _boundaries(policy, used) if moment > used))
    return min(moments, default=None)


def boundary(policy: Policy, now: Moment) -> Moment:
    """The last daily boundary at or before now."""
    return next(moment for moment in reversed(_boundaries(policy, now)) if moment <= now)


def notice(policy: Policy, over: Due) -> str:
    """The notice for the people in a lane that starts over."""
    why = f"nobody had written here for {_length(policy.idle_minutes)}" if over is Due.IDLE else "a new day began"
    return f"This is a new session: {why}. The old one is kept: /undo goes back to it."


def _boundaries(policy: Policy, near: Moment) -> list[Moment]:
    """The daily boundaries within some days of a moment, at least one on either side, oldest first."""
    zone = ZoneInfo(policy.zone)
    today = datetime.fromtimestamp(near, zone).date()
    found = []
    for day in (today + timedelta(days=ahead) for ahead in range(-2, 4)):
        moment = strikes(datetime.combine(day, time(policy.hour), zone))
        if day in (datetime.fromtimestamp(m, zone).date() for m in (moment - 1, moment)):
            found.append(moment)
    # By the moment: clocks that go back over midnight show a date again that was over.
    return sorted(found)


def _length(minutes: float) -> str:
    for size, unit in ((1440, "day"), (60, "hour"), (1, "minute")):
        if minutes >= size and minutes % size == 0:
            count = int(minutes // size)
            return f"{count} {unit}s" if count > 1 else ("an hour" if unit == "hour" else f"a {unit}")
    return f"{minutes:g} minutes"


def strikes(hour: datetime) -> Moment:
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
