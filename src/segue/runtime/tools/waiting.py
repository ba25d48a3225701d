"""Waiting: a call of a tool waits for something that happens elsewhere."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from segue.runtime.parts import Ground
from segue.runtime.windows.watchers import Watched

T = TypeVar("T")


async def until(ground: Ground, what: Watched, seconds: float, look: Callable[[], Awaitable[T | None]]) -> T | None:
    """Look whenever there is news of something, until `look` finds what is waited for or the time is over."""
    news = asyncio.Event()
    ends = time.monotonic() + seconds
    look_away = ground.watches.watch(what, lambda _: news.set())
    try:
        while True:
            news.clear()
            found = await look()
            left = ends - time.monotonic()
            if found is not None or left <= 0:
                return found
            with contextlib.suppress(TimeoutError):
                # Being told is the rule: to look is for when a hint got lost.
                async with asyncio.timeout(min(ground.settings.poll, left)):
                    await news.wait()
    finally:
        look_away()
