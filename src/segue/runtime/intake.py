"""The life of each account: its adapter runs, by lease where only one replica may, and again when it breaks."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import partial

from segue.changes import lockers
from segue.changes.exchange import replicas
from segue.changes.exchange.replicas import Leased
from segue.core.accounts import Health, Reach
from segue.core.commands import Spec
from segue.core.contracts.adapters import (
    Accept,
    Accepted,
    Adapter,
    Arrived,
    Connection,
    Cursor,
    HasLines,
    TakesWebhooks,
)
from segue.core.contracts.lockers import Thing
from segue.core.lanes import account_key
from segue.errors import Disconnected, Fenced, Invalid, StoreError
from segue.runtime.cancelling import surely
from segue.runtime.replica import Pause, Replica
from segue.runtime.retrying import Patient

log = logging.getLogger(__name__)

_SHORTEST_WAIT, _LONGEST_WAIT = 0.1, 30.0
_STEADY = 5.0
"""Seconds after which a life was worth a short wait before the next."""


class Life:
    """The life of one account, or of one of its connections: its adapter's intake, and its health."""

    def __init__(
        self,
        store: Patient,
        adapter: Adapter,
        replica: Replica,
        accept: Accept,
        poll: float,
        commands: Sequence[Spec] = (),
        line: str = "",
    ) -> None:
        self._store = store
        self._adapter = adapter
        self._replica = replica
        self._accept = accept
        self.cursor: Cursor = _Shared()
        self.commands = commands
        self.line = line
        self._held = f"{adapter.account}#{line}" if line else adapter.account
        """The connection, as replicas lease it: no account's name has that sign in it."""
        self.name = f"{adapter.platform}.{adapter.account}"
        self.health = Health(Reach.CONNECTING)
        self.wake = Pause(poll)

    async def run(self) -> None:
        """Let the adapter live until cancelled; what breaks is made again."""
        wait = _SHORTEST_WAIT
        while True:
            if not await self._hold():
                self.health = Health(Reach.ELSEWHERE)
                await self.wake.wait()
                continue
            loop = asyncio.get_running_loop()
            started = loop.time()
            try:
                await surely(partial(self._adapter.run, self))
                if isinstance(self._adapter, TakesWebhooks):
                    self.health = Health(Reach.CALLED)
                    return
                self._broke(Disconnected("its adapter stopped by itself"))
            except Fenced as error:
                log.warning("%s", error)
            except Exception as error:  # noqa: BLE001 -- the adapter isn't ours: whatever broke, it is connected again
                self._broke(error)
            finally:
                await self._leave()
            wait = wait_after(wait, loop.time() - started)
            await asyncio.sleep(wait)

    async def accept(self, arrived: Arrived) -> Accepted:
        """Make an arrival durable; whoever brings one is connected."""
        self.connected()
        return await self._accept(arrived)

    def connected(self) -> None:
        """The platform answers."""
        if self.health.reach is Reach.BROKEN:
            log.warning("%s is connected again", self.name)
        if self.health.reach is not Reach.CONNECTED:
            self.health = Health(Reach.CONNECTED)

    def _broke(self, error: Exception) -> None:
        # Only what Segue worded itself is sure to carry no secret.
        why = str(error) if isinstance(error, Disconnected) else f"{type(error).__name__}, the log says more"
        if self.health.reach is not Reach.BROKEN:
            unforeseen = None if isinstance(error, Disconnected) else error
            log.warning("%s lost its connection and is tried again: %s", self.name, why, exc_info=unforeseen)
        self.health = Health(Reach.BROKEN, why)

    async def _hold(self) -> bool:
        """Take the connection, where only one replica may have it; returns whether it is ours."""
        adapter = self._adapter
        if adapter.connection is Connection.ONE:
            held = await self._store.write(replicas.take_connection, adapter.platform, self._held, self._replica.id)
            if held is None:
                return False
            self.cursor = _Kept(self._store, held)
        return True

    async def _leave(self) -> None:
        adapter = self._adapter
        if adapter.connection is Connection.ONE:
            try:
                await self._store.write(replicas.leave_connection, adapter.platform, self._held, self._replica.id)
            except StoreError as error:
                log.info("the connection of %s is free once this replica's lease is over: %s", self.name, error)


def lines_of(adapter: Adapter) -> Sequence[str]:
    """The connections that an adapter keeps up, each of which has a life."""
    return adapter.lines if isinstance(adapter, HasLines) else ("",)


def wait_after(before: float, lasted: float) -> float:
    """Seconds until a connection that broke is made again: longer each time, unless it was worth the wait before it."""
    return _SHORTEST_WAIT if lasted > max(before, _STEADY) else min(before * 2, _LONGEST_WAIT)


class _Kept:
    """The cursor of a connection that this replica holds."""

    def __init__(self, store: Patient, held: Leased) -> None:
        self._store = store
        self._held = held
        self._cursor = held.cursor

    async def read(self) -> str:
        return self._cursor

    async def keep(self, value: str) -> None:
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


class OwnLocker:
    """The locker of an account, in the database."""

    def __init__(self, store: Patient, adapter: Adapter) -> None:
        self._store = store
        self._account = account_key(adapter.platform, adapter.account)

    async def read(self, beginning: str = "") -> dict[str, Thing]:
        """All things whose names begin so."""
        return await self._store.read(lockers.read, self._account, beginning)

    async def keep(self, things: Mapping[str, Thing]) -> None:
        """Make changes durable; a commit whose outcome nobody knows may seem outdated: that costs a new try."""
        await self._store.write(lockers.keep, self._account, dict(things))
