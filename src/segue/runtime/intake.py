"""Connections that only one replica may hold: leased, and taken over when their holder dies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial

from segue.changes.exchange import replicas
from segue.changes.exchange.replicas import Leased
from segue.core.commands import Spec
from segue.core.contracts.adapters import Accept, Accepted, Adapter, Connection, Cursor, Letter, Pulls, ShowsCommands
from segue.core.messages import Arrival
from segue.core.values import Value
from segue.errors import Disconnected, Fenced, Invalid
from segue.runtime.cancelling import surely
from segue.runtime.replica import Replica, Wake
from segue.runtime.retrying import Patient

log = logging.getLogger(__name__)

_SHORTEST_WAIT, _LONGEST_WAIT = 0.1, 30.0
_STEADY = 5.0
"""Seconds after which a connection that nothing came over is taken for a good one."""


class Reach(StrEnum):
    """How an account stands with its platform, in the words that a person reads."""

    CALLED = "waits to be called"
    CONNECTING = "is connecting"
    CONNECTED = "is connected"
    ELSEWHERE = "is held by another replica"
    BROKEN = "isn't connected"


class Line(Value, frozen=True):
    """An account's connection, as it is now."""

    platform: str
    account: str
    reach: Reach
    why: str = ""
    """What broke it, and what is done about it."""

    @property
    def says(self) -> str:
        """How it stands, and why."""
        return f"{self.reach}: {self.why}" if self.why else self.reach.value

    @property
    def text(self) -> str:
        """It as one line."""
        return f"{self.platform}.{self.account} {self.says}"


class Intake:
    """Takes in the arrivals of an account that its adapter fetches."""

    def __init__(
        self,
        store: Patient,
        adapter: Adapter,
        replica: Replica,
        accept: Accept,
        poll: float,
        commands: Sequence[Spec] = (),
    ) -> None:
        self._store = store
        self._adapter = adapter
        self._replica = replica
        self._accept = accept
        self._commands = commands
        self.wake = Wake(poll)
        pulls = isinstance(adapter, Pulls)
        self.line = Line(adapter.platform, adapter.account, Reach.CONNECTING if pulls else Reach.CALLED)

    @property
    def trouble(self) -> str:
        """Why the account isn't connected now; empty while it is."""
        return self.line.text if self.line.reach is Reach.BROKEN else ""

    async def run(self) -> None:
        """Stay connected until cancelled; a connection that breaks is made again."""
        if not isinstance(self._adapter, Pulls):
            return
        wait = _SHORTEST_WAIT
        while True:
            cursor = await self._hold()
            if cursor is None:
                self._stands(Reach.ELSEWHERE)
                await self.wake.wait()
                continue
            loop = asyncio.get_running_loop()
            started = loop.time()
            steady = loop.call_later(_STEADY, self._connected)
            try:
                if isinstance(self._adapter, ShowsCommands):
                    await self._adapter.show_commands(self._commands)
                await surely(partial(self._adapter.arrivals, self._take, cursor))
            except Fenced as error:
                log.warning("%s", error)
            except Exception as error:  # noqa: BLE001 -- the adapter isn't ours: whatever broke, it is connected again
                self._broke(error)
            finally:
                steady.cancel()
                await self._leave()
            wait = wait_after(wait, loop.time() - started)
            await asyncio.sleep(wait)

    async def _take(self, arrived: Arrival | Letter) -> Accepted:
        self._connected()
        return await self._accept(arrived)

    def _connected(self) -> None:
        if self.line.reach is Reach.BROKEN:
            log.warning("%s.%s is connected again", self.line.platform, self.line.account)
        self._stands(Reach.CONNECTED)

    def _broke(self, error: Exception) -> None:
        # Only what Segue worded itself is sure to carry no secret.
        why = str(error) if isinstance(error, Disconnected) else f"{type(error).__name__}, the log says more"
        if self.line.reach is not Reach.BROKEN:
            unforeseen = None if isinstance(error, Disconnected) else error
            name = f"{self.line.platform}.{self.line.account}"
            log.warning("%s lost its connection and is tried again: %s", name, why, exc_info=unforeseen)
        self._stands(Reach.BROKEN, why)

    def _stands(self, reach: Reach, why: str = "") -> None:
        self.line = Line(self.line.platform, self.line.account, reach, why)

    async def _hold(self) -> Cursor | None:
        adapter = self._adapter
        if adapter.connection is Connection.ANY:
            return _Shared()
        held = await self._store.write(replicas.take_connection, adapter.platform, adapter.account, self._replica.id)
        return _Kept(self._store, held, self._connected) if held is not None else None

    async def _leave(self) -> None:
        adapter = self._adapter
        if adapter.connection is Connection.ONE:
            await self._store.write(replicas.leave_connection, adapter.platform, adapter.account, self._replica.id)


def wait_after(before: float, lasted: float) -> float:
    """Seconds until a connection that broke is made again: longer each time, unless it was worth the wait before it."""
    return _SHORTEST_WAIT if lasted > max(before, _STEADY) else min(before * 2, _LONGEST_WAIT)


class _Kept:
    """The cursor of a connection that this replica holds."""

    def __init__(self, store: Patient, held: Leased, connected: Callable[[], None]) -> None:
        self._store = store
        self._held = held
        self._cursor = held.cursor
        self._connected = connected

    async def read(self) -> str:
        return self._cursor

    async def keep(self, value: str) -> None:
        self._connected()
        if value != self._cursor:
            await self._store.write(replicas.set_cursor, self._held, value)
            self._cursor = value


class _Shared:
    """For a connection that any replica may have: what one took in says nothing about the others."""

    async def read(self) -> str:
        return ""

    async def keep(self, value: str) -> None:
        problem = f"{value!r} can't be kept for a connection that any replica may have"
        raise Invalid("cursor", problem, "Let the adapter's connection be Connection.ONE.")
