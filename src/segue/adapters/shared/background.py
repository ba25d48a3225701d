"""Work beside a connection, such as filling a menu: it may fail, and never keeps an account deaf."""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager

log = logging.getLogger(__name__)


@asynccontextmanager
async def beside(what: str, work: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Do something while inside; if it fails, the log says so and all else goes on."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda done: _told(what, done))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def _told(what: str, done: asyncio.Task[None]) -> None:
    if not done.cancelled() and (error := done.exception()):
        # The words of an error may hold an address with a secret in it.
        log.warning("%s: it failed (%s), and is tried again at the next connection", what, type(error).__name__)
