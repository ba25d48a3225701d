"""Threads that are being opened, for a platform that doesn't deduplicate calls by key."""

import asyncio
from collections.abc import Callable, Coroutine

from segue.core.lanes import Address


class Openings:
    """Opens one thread for each key.

    If the caller stops waiting, the thread is opened all the same. The next call with its key returns it.
    """

    def __init__(self) -> None:
        self._opened: dict[str, asyncio.Task[Address]] = {}

    async def open(self, key: str, make: Callable[[], Coroutine[object, object, Address]]) -> Address:
        """Return the thread of a key, and open it first if needed. A failed attempt is repeated."""
        opening = self._opened.get(key)
        if opening is None:
            opening = self._opened[key] = asyncio.create_task(make())
            opening.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(opening)

    def close(self) -> None:
        """Cancel all attempts."""
        for opening in self._opened.values():
            opening.cancel()

    def _forget(self, key: str, opening: asyncio.Task[Address]) -> None:
        if opening.cancelled() or opening.exception() is not None:
            del self._opened[key]
