"""Keeps calls below what a platform allows, before it has to refuse one.

A limiter is told the time; it never reads a clock and never waits.
"""

from collections import deque
from collections.abc import Mapping

from segue.core.values import Moment, Value

_MANY = 10_000
"""Keys after which those that count for nothing any more are dropped."""


class Rate(Value, frozen=True):
    """So many calls in so many seconds."""

    count: int
    seconds: float


class Limiter:
    """Counts calls by key, in windows that slide."""

    def __init__(self) -> None:
        self._calls: dict[str, deque[Moment]] = {}
        self._windows: dict[str, float] = {}

    def take(self, wanted: Mapping[str, Rate], now: Moment) -> float:
        """Seconds until a call that counts under these keys may be made; 0 if it may now, and then it is counted."""
        wait = max((self._wait(key, rate, now) for key, rate in wanted.items()), default=0.0)
        if wait <= 0:
            for key, rate in wanted.items():
                self._calls.setdefault(key, deque(maxlen=rate.count)).append(now)
                self._windows[key] = rate.seconds
            if len(self._calls) > _MANY:
                self._drop(now)
        return max(wait, 0.0)

    def _wait(self, key: str, rate: Rate, now: Moment) -> float:
        calls = self._calls.get(key)
        return calls[0] + rate.seconds - now if calls and len(calls) >= rate.count else 0.0

    def _drop(self, now: Moment) -> None:
        for key in [key for key, calls in self._calls.items() if calls[-1] + self._windows[key] <= now]:
            del self._calls[key], self._windows[key]


_KEPT_BACK = 0.5
"""Of what may be written at once, kept for final texts: what only shows a reply growing may not use it up."""


class Pace:
    """Counts what was written, by a clock that it is given."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._left = float(burst)
        self._at: float | None = None

    def wait(self, now: float) -> float:
        """Count one message; returns 0, or the seconds after which it may be written, and then it isn't counted."""
        return self._count(now, 1.0)

    def wait_to_show(self, now: float) -> float:
        """The same, for a message that isn't final."""
        return self._count(now, 1.0 + self._burst * _KEPT_BACK)

    def refused(self, now: float, seconds: float) -> None:
        """The homeserver knows better: nothing may be written for so long."""
        self._fill(now)
        self._left = min(self._left, 1.0 - seconds * self._rate)

    def _count(self, now: float, needed: float) -> float:
        self._fill(now)
        if self._left < needed:
            return (needed - self._left) / self._rate
        self._left -= 1.0
        return 0.0

    def _fill(self, now: float) -> None:
        if self._at is not None:
            self._left = min(float(self._burst), self._left + max(0.0, now - self._at) * self._rate)
        self._at = now
