"""Background work beside a connection, such as filling a menu.

It may fail without stopping the account from receiving messages.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from segue.core.contracts.adapters import Cursor
from segue.errors import SendError, SendLater

log = logging.getLogger(__name__)

_LATER = 30.0
"""Seconds before the next attempt to read missed messages."""
_KEEP = 5.0
"""Seconds between two writes of the cursor."""


@asynccontextmanager
async def beside(what: str, work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run a task inside the block. If it fails, log the failure and continue."""
    task = asyncio.create_task(_patient(work))
    task.add_done_callback(lambda done: _told(what, done))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


class Gap:
    """Messages missed while disconnected: reads them back at once, or later beside new messages.

    Law: the cursor is written only after the gap is closed. Otherwise nothing would ever fetch the missing messages.
    """

    def __init__(self) -> None:
        self.is_closed = False
        self._left = asyncio.Event()
        self._kept = -_KEEP

    @contextmanager
    def closing(self, whose: object) -> Iterator[None]:
        """Read back inside this block. If the platform fails temporarily, do it later."""
        self.is_closed = False
        try:
            yield
            self.is_closed = True
        except SendError as error:
            self._left.set()
            log.warning("%s: what was missed is read back later: %s", whose, error)

    async def keep(self, cursor: Cursor, place: str) -> None:
        """Write the cursor every few seconds, if no earlier message is missing."""
        if self.is_closed and time.monotonic() - self._kept >= _KEEP:
            self._kept = time.monotonic()
            await cursor.keep(place)

    async def close_later(self, read_back: Callable[[], Awaitable[None]]) -> None:
        """Read back again after each failed attempt."""
        while True:
            await self._left.wait()
            self._left.clear()
            await asyncio.sleep(_LATER)
            await read_back()


async def _patient(work: Callable[[], Awaitable[None]]) -> None:
    """Run the work again after each time that the platform asks to wait."""
    while True:
        try:
            return await work()
        except SendLater as error:
            if error.seconds is None:
                raise
            await asyncio.sleep(error.seconds)


def _told(what: str, done: asyncio.Task[None]) -> None:
    if not done.cancelled() and (error := done.exception()):
        # The text of an error may contain an address with a secret in it.
        log.warning("%s: it failed (%s), and is tried again at the next connection", what, type(error).__name__)
