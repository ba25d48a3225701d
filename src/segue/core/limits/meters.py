"""Meters: how many messages of a month a platform sends for nothing, and how many an account has had."""

from datetime import datetime

from segue.core.resets import time_zone
from segue.core.values import Moment, Value

_LOW = 0.9
"""The part of the free messages from which on the host is warned."""


class Month(Value, frozen=True):
    """A month of a time zone."""

    name: str
    """Year and month, such as 2026-11."""
    since: Moment


class Metered(Value, frozen=True):
    """The messages of an account in a month, and those that cost nothing."""

    account: str
    used: int
    free: int

    @property
    def low(self) -> bool:
        """Whether the free ones are about to end, or have."""
        return self.used >= _LOW * self.free

    @property
    def words(self) -> str:
        """The count, in a line."""
        return f"{self.account}: {self.used:,} of {self.free:,} free messages this month."

    @property
    def warning(self) -> str:
        """The words for a host whose free messages end."""
        return (
            f"{self.words} Beyond them each one costs, and without a payment method nothing arrives: see to one in the "
            "platform's own settings."
        )


def month_of(at: Moment, zone: str) -> Month:
    """The month of a moment."""
    begun = datetime.fromtimestamp(at, time_zone(zone)).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return Month(f"{begun:%Y-%m}", begun.timestamp())
