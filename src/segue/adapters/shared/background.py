"""Work beside a connection, such as filling a menu: it may fail, and never keeps an account deaf."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from segue.errors import SendLater

log = logging.getLogger(__name__)


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
