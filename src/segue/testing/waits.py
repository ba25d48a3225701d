"""Waits that end with a change and never with a timer, and a clock that only the test moves."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from segue.core.values import Moment

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds until a failing test gives up. A passing test never waits that long."""


class NeverCame(AssertionError):
    """An event that a test waited for didn't happen."""


class Changes:
    """Wakes waiting tasks after every change."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def tell(self) -> None:
        """Report a change: all waiting tasks check again."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            if not one.done():
                one.set_result(None)

    async def next(self) -> None:
        """Wait for the next change, without a time limit."""
        await self._change()

    def _change(self) -> asyncio.Future[None]:
        one = asyncio.get_running_loop().create_future()
        self._waiting.append(one)
        return one

    async def until(self, look: Callable[[], T | None], missing: Callable[[], str]) -> T:
        """Wait until `look` returns a value; `missing` describes the state for the error."""
        try:
            async with asyncio.timeout(PATIENCE):
                while (found := look()) is None:
                    await self.next()
                return found
        except TimeoutError:
            raise NeverCame(missing()) from None

    async def until_so(self, so: Callable[[], Awaitable[bool]], missing: Callable[[], Awaitable[str]]) -> None:
        """Wait until `so` returns true. A change during a check causes another check."""
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
    """A clock that only the test moves. It fits wherever Segue takes a clock."""

    def __init__(self, now: Moment = 1_750_000_000.0) -> None:
        self.now = now

    def __call__(self) -> Moment:
        """Return the clock's time."""
        return self.now

    def passes(self, seconds: float) -> Moment:
        """Move the clock, backward if negative, like a clock that is corrected."""
        self.now += seconds
        return self.now
