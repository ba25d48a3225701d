"""Times as a model is told them: before the first message, and before each that comes after a while or on another day.

Law: a line is a function of the messages up to it, which never change. So what was told stays as it was, and a
provider's cache of the prompt holds.
"""

from datetime import datetime
from zoneinfo import ZoneInfo

from segue.core.prompt.envelopes import gateway_line
from segue.core.values import Moment

_WHILE = 3600.0
"""Seconds after which a time that was told is old."""


class TimeLines:
    """Says when the messages of one prompt were said, in their order."""

    def __init__(self, zone: str) -> None:
        self._zone = ZoneInfo(zone)
        self._name = zone
        self._told: Moment | None = None

    def before(self, at: Moment | None) -> str:
        """The line before a message of this time; empty if the last one still holds."""
        if at is None:
            return ""
        now = datetime.fromtimestamp(at, self._zone)
        if self._told is not None:
            last = datetime.fromtimestamp(self._told, self._zone)
            if at < self._told + _WHILE and now.date() <= last.date():
                return ""
        self._told = at
        return gateway_line(f"It is {now:%A, %Y-%m-%d %H:%M} ({self._name}).")
