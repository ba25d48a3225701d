"""Connections that only one replica may hold: leased, and taken over when their holder dies."""

from __future__ import annotations

import asyncio
import logging

from segue.core.contracts import Accept, Adapter, Connection, Pulls
from segue.runtime.patience import Patient
from segue.runtime.replica import Replica
from segue.runtime.wakes import Wake
from segue.store import replicas

log = logging.getLogger(__name__)

_LONGEST_WAIT = 30.0


class Intake:
    """Takes in the arrivals of an account that its adapter fetches."""

    def __init__(self, store: Patient, adapter: Adapter, replica: Replica, accept: Accept, poll: float) -> None:
        self._store = store
        self._adapter = adapter
        self._replica = replica
        self._accept = accept
        self.wake = Wake(poll)
        self.trouble = ""
        """Why the account isn't connected now; empty while it is."""

    async def run(self) -> None:
        """Stay connected until cancelled; a connection that breaks is made again."""
        if not isinstance(self._adapter, Pulls):
            return
        wait = 0.1
        while True:
            if not await self._hold():
                await self.wake.wait()
                continue
            self.trouble = ""
            started = asyncio.get_running_loop().time()
            try:
                await self._adapter.arrivals(self._accept)
            except Exception as error:
                name = f"{self._adapter.platform}.{self._adapter.account}"
                self.trouble = f"{name} isn't connected: {type(error).__name__}. It is tried again; the log says more."
                log.warning("%s lost its connection", name, exc_info=error)
            finally:
                await self._leave()
            wait = 0.1 if asyncio.get_running_loop().time() - started > _LONGEST_WAIT else min(wait * 2, _LONGEST_WAIT)
            await asyncio.sleep(wait)

    async def _hold(self) -> bool:
        adapter = self._adapter
        if adapter.connection is Connection.ANY:
            return True
        held = await self._store.write(replicas.take_connection, adapter.platform, adapter.account, self._replica.id)
        return held is not None

    async def _leave(self) -> None:
        adapter = self._adapter
        if adapter.connection is Connection.ONE:
            await self._store.write(replicas.leave_connection, adapter.platform, adapter.account, self._replica.id)
