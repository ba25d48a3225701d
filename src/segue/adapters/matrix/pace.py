"""How fast a homeserver lets one user write: so many at once, then so many a second."""

from __future__ import annotations

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
