"""Hints between machines: notifications of PostgreSQL, each batch in a transaction of its own."""

import asyncio
import contextlib
import logging
from typing import Any

import asyncpg

from segue.database.hints import Hints
from segue.database.postgres_server import TROUBLE, Server
from segue.errors import StoreError

_log = logging.getLogger(__name__)
_NOTIFY = "select pg_notify($1, topic) from unnest($2::text[]) as topic"
_LONGEST = 7999
"""Bytes that a notification can carry."""
_PULSE = 30.0
"""Seconds of silence after which the connection is tried: a machine that vanished says nothing either."""
_FAREWELL = 2.0
_Connection = asyncpg.Connection


class Channel(Hints):
    """One connection that listens and notifies, made anew whenever it breaks."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self._server = server
        self._topics: dict[str, None] = {}
        self._stirred = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begin to listen."""
        self._task = asyncio.create_task(self._keep(await self._connect()))

    def send(self, topic: str) -> None:
        """Tell this process at once, and the others with the next batch."""
        self.tell(topic)
        self._topics[topic if len(topic.encode()) <= _LONGEST else ""] = None
        self._stirred.set()

    async def close(self) -> None:
        """Send what still waits, then leave."""
        self._closing = True
        self._stirred.set()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=_FAREWELL)
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _keep(self, connection: _Connection) -> None:
        while True:
            try:
                await self._serve(connection)
            except TROUBLE as error:
                _log.warning("%s: hints are cut off until we are connected again: %s", self._server.place, error)
            else:
                return
            finally:
                connection.terminate()
            connection = await self._reconnect()
            self.tell("")  # whatever was said meanwhile

    async def _serve(self, connection: _Connection) -> None:
        while self._topics or not self._closing:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PULSE):
                    await self._stirred.wait()
            self._stirred.clear()
            topics, self._topics = self._topics, {}
            try:
                # With nothing to say it only finds out whether somebody answers.
                await connection.execute(_NOTIFY, self._server.schema, list(topics), timeout=_PULSE)
            except BaseException:
                self._topics = topics | self._topics
                raise
        await connection.close()

    async def _reconnect(self) -> _Connection:
        pause = 0.05
        while True:
            try:
                return await self._connect()
            except StoreError:
                await asyncio.sleep(pause)
                pause = min(2 * pause, 2.0)

    async def _connect(self) -> _Connection:
        connection = await self._server.connect()
        connection.add_termination_listener(lambda _: self._stirred.set())
        with self._server.made_ready(connection):
            await connection.add_listener(self._server.schema, self._heard)
        return connection

    def _heard(self, connection: Any, sender: int, _: str, topic: object) -> None:
        if sender != connection.get_server_pid():  # our own were told without a detour
            self.tell(str(topic))
