"""Threads that are being opened, for a platform that doesn't know a call by its key."""

import asyncio
from collections.abc import Callable, Coroutine

from segue.core.lanes import Address


class Openings:
    """Opens a thread once for each key.

    Whoever asks may stop waiting: it is opened all the same, and is the one that they get when they ask again.
    """

    def __init__(self) -> None:
        self._opened: dict[str, asyncio.Task[Address]] = {}

    async def open(self, key: str, make: Callable[[], Coroutine[object, object, Address]]) -> Address:
        """The thread of a key; one that couldn't be opened is tried again."""
        opening = self._opened.get(key)
        if opening is None:
            opening = self._opened[key] = asyncio.create_task(make())
            opening.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(opening)

    def close(self) -> None:
        """Wait for none of them any more."""
        for opening in self._opened.values():
            opening.cancel()

    def _forget(self, key: str, opening: asyncio.Task[Address]) -> None:
        if opening.cancelled() or opening.exception() is not None:
            del self._opened[key]
