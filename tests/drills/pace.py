"""What is too slow for one case, on any machine."""

import time

_SECONDS = 1.0
"""Seconds of the processor that are always enough."""
_LAPS = 40
"""On a slower machine, so many times what it needs for a fixed piece of work."""


def slow(took: float) -> str:
    """What is wrong with a case that took so many seconds of the processor."""
    return f"it took {took:.1f} s" if took > _SECONDS and took > _LAPS * _lap() else ""


def _lap() -> float:
    """Seconds that this machine needs for a fixed piece of work now: about 0.02 s on a fast one."""
    began = time.process_time()
    sum(number % 7 for number in range(500_000))
    return time.process_time() - began
