"""Waiting until something is so: woken by each change, never by a timer."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds after which a test is told what never came; no test that passes waits for them."""


class NeverCame(AssertionError):
    """What a test waited for didn't happen."""


class Changes:
    """Wakes those who wait whenever something may have become so."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def tell(self) -> None:
        """Something changed: everyone who waits looks again."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)

    async def next(self) -> None:
        """Wait for the next change, for as long as it takes."""
        one = asyncio.get_running_loop().create_future()
        self._waiting.append(one)
        await one

    async def until(self, look: Callable[[], T | None], missing: Callable[[], str]) -> T:
        """Wait until there is something to see; `missing` says what there was instead."""
        try:
            async with asyncio.timeout(PATIENCE):
                while (found := look()) is None:
                    await self.next()
                return found
        except TimeoutError:
            raise NeverCame(missing()) from None
