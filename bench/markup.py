"""The worst texts for each platform's markup, in seconds: how long one keeps a thread busy until it is sent."""

import time
from collections.abc import AsyncIterator

from bench.databases import Databases
from bench.table import Line, Target, milliseconds
from tests.drills.bombs import PATTERNS, PLATFORMS, bomb, sent

_PROSE = "Cats sleep for most of the day, and nobody knows what they dream of. "
_LONGEST_MS = 10_000
"""Milliseconds that the worst text may take on any machine that is fit to run a gateway."""


async def bombs(databases: Databases) -> AsyncIterator[Line]:
    """Split and render the drill's bracket bombs, beside prose of the same length."""
    length = databases.scale.bomb
    for name in PLATFORMS:
        prose = _seconds(name, bomb(_PROSE, length))
        worst, pattern = max((_seconds(name, bomb(pattern, length)), pattern) for pattern in PATTERNS)
        what = f"the worst of {len(PATTERNS)} texts for {name}: {pattern[:12]!a}"
        target = Target("<", _LONGEST_MS, "ms")
        yield Line("bombs", what, milliseconds(worst), f"{milliseconds(prose)}, prose", None, target, worst * 1000)


def _seconds(name: str, text: str) -> float:
    began = time.perf_counter()
    sent(text, PLATFORMS[name])
    return time.perf_counter() - began
