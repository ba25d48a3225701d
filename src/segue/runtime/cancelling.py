"""Cancelling what isn't ours: a library may lose a cancellation, so it is told until it has ended."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_AGAIN = 2.0
"""Seconds in which what was cancelled may tidy up before it is told again."""


async def surely(work: Callable[[], Coroutine[Any, Any, T]], again: float = _AGAIN) -> T:
    """Do it; once this is cancelled it ends, though it lost the first cancellation.

    httpx does so when it is cancelled at the very moment at which it has connected.
    """
    task = asyncio.create_task(work())
    try:
        # Shielded, so that this hears of a cancellation itself.
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            task.cancel()
            # Whoever cancels this once more is heard by telling it once more.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task], timeout=again)
        if not task.cancelled():
            task.exception()  # what it says to being cancelled is of no interest
        raise
