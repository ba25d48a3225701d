"""Work beside a connection, such as filling a menu: it may fail, and never keeps an account deaf."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from segue.core.contracts.adapters import Cursor
from segue.errors import SendError, SendLater

log = logging.getLogger(__name__)

_LATER = 30.0
"""Seconds until what couldn't be read back is tried again."""
_KEEP = 5.0
"""Seconds between two times that a place is kept."""


@asynccontextmanager
async def beside(what: str, work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Do something while inside; if it fails, the log says so and all else goes on."""
    task = asyncio.create_task(_patient(work))
    task.add_done_callback(lambda done: _told(what, done))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


class Gap:
    """A time in which nobody listened: what was said then is read back at once, or else later, beside all that comes.

    Law: a place is kept only after the gap is closed, or what is missing would never be looked for again.
    """

    def __init__(self) -> None:
        self.is_closed = False
        self._left = asyncio.Event()
        self._kept = -_KEEP

    @contextmanager
    def closing(self, whose: object) -> Iterator[None]:
        """Around reading back: what the platform doesn't tell now is left for later."""
        self.is_closed = False
        try:
            yield
            self.is_closed = True
        except SendError as error:
            self._left.set()
            log.warning("%s: what was missed is read back later: %s", whose, error)

    async def keep(self, cursor: Cursor, place: str) -> None:
        """Keep a place, now and then, if nothing that was said before it is missing."""
        if self.is_closed and time.monotonic() - self._kept >= _KEEP:
            self._kept = time.monotonic()
            await cursor.keep(place)

    async def close_later(self, read_back: Callable[[], Awaitable[None]]) -> None:
        """Read back again whenever something was left."""
        while True:
            await self._left.wait()
            self._left.clear()
            await asyncio.sleep(_LATER)
            await read_back()


async def _patient(work: Callable[[], Awaitable[None]]) -> None:
    """Work, and again after as long as the platform asks to wait."""
    while True:
        try:
            return await work()
        except SendLater as error:
            if error.seconds is None:
                raise
            await asyncio.sleep(error.seconds)


def _told(what: str, done: asyncio.Task[None]) -> None:
    if not done.cancelled() and (error := done.exception()):
        # The words of an error may hold an address with a secret in it.
        log.warning("%s: it failed (%s), and is tried again at the next connection", what, type(error).__name__)
