"""The connections to PostgreSQL that transactions take turns on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg

from segue.store.server import TROUBLE

_FAREWELL = 2.0


class Pool:
    """Lends connections, at most so many at once; the one that came back last goes out first."""

    def __init__(self, connect: Callable[[], Awaitable[asyncpg.Connection]], most: int) -> None:
        self._connect = connect
        self._idle: list[asyncpg.Connection] = []
        self._free = asyncio.Semaphore(most)

    @contextlib.asynccontextmanager
    async def lend(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection; one that comes back in a transaction, or after it was cancelled, isn't lent again."""
        async with self._free:
            connection = await self._take()
            try:
                yield connection
            finally:
                if connection.is_closed() or connection.is_in_transaction():
                    connection.terminate()
                else:
                    self._idle.append(connection)

    def forget(self) -> None:
        """Lend none of the idle ones again: they may be as dead as one that was found so."""
        while self._idle:
            self._idle.pop().terminate()

    async def close(self) -> None:
        """Say goodbye to the server."""
        while self._idle:
            with contextlib.suppress(*TROUBLE):  # then it is gone already
                await self._idle.pop().close(timeout=_FAREWELL)

    async def _take(self) -> asyncpg.Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return await self._connect()
