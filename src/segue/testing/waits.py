"""Waits that end by a change and never by a timer, and a clock that only the test moves."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from segue.core.values import Moment

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds after which a test is told what never came; no test that passes waits for them."""


class NeverCame(AssertionError):
    """The event that a test waited for didn't happen."""


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
        await self._change()

    def _change(self) -> asyncio.Future[None]:
        one = asyncio.get_running_loop().create_future()
        self._waiting.append(one)
        return one

    async def until(self, look: Callable[[], T | None], missing: Callable[[], str]) -> T:
        """Wait until there is something to see; `missing` says what there was instead."""
        try:
            async with asyncio.timeout(PATIENCE):
                while (found := look()) is None:
                    await self.next()
                return found
        except TimeoutError:
            raise NeverCame(missing()) from None

    async def until_so(self, so: Callable[[], Awaitable[bool]], missing: Callable[[], Awaitable[str]]) -> None:
        """The same where looking takes a while: what changes meanwhile is looked at again."""
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    change = self._change()
                    if await so():
                        return
                    await change
        except TimeoutError:
            raise NeverCame(await missing()) from None


class HandClock:
    """A clock that stands still until it is moved; it serves wherever Segue takes a clock."""

    def __init__(self, now: Moment = 1_750_000_000.0) -> None:
        self.now = now

    def __call__(self) -> Moment:
        """The time that it shows."""
        return self.now

    def passes(self, seconds: float) -> Moment:
        """Let time pass; back in time too, if negative, as clocks that are set do."""
        self.now += seconds
        return self.now
