"""This process among those that share the database: alive while it beats."""

import asyncio
import contextlib
import logging
import time

from segue.changes.exchange import replicas
from segue.core.contracts.database import Ids
from segue.errors import Fenced
from segue.runtime.retrying import Patient

log = logging.getLogger(__name__)


class Replica:
    """A lease on being alive; what a replica that stopped beating held goes to the others."""

    def __init__(self, store: Patient, ids: Ids, lease: float) -> None:
        self._store = store
        self._ids = ids
        self.lease = lease
        self.id = ""
        self._until = 0.0

    async def join(self) -> None:
        """Come alive under an id that nobody had before."""
        while True:
            started = time.monotonic()
            self.id = self._ids()
            await self._store.write(replicas.join, self.id, self.lease)
            self._until = started + self.lease
            try:
                # Whoever starts after a crash takes over what the crash left behind as soon as its lease is over.
                await self._beat()
            except Fenced:
                # The database took longer to answer than the lease lasts: that id is dead already.
                log.warning("this replica was taken for dead before it came alive; it tries again")
            else:
                return

    async def beat(self) -> None:
        """Live on until cancelled; raises `Fenced` when the lease was lost."""
        while True:
            await asyncio.sleep(self.lease / 3)
            await self._beat()

    async def _beat(self) -> None:
        # The lease is counted from before the call, so that a slow answer makes it shorter, never longer.
        started = time.monotonic()
        await self._store.write(replicas.beat, self.id, self.lease)
        self._until = started + self.lease

    @property
    def left(self) -> float:
        """Seconds for which this replica is surely alive to the others."""
        return self._until - time.monotonic()

    async def leave(self) -> None:
        """Hand all that is held over to the others."""
        await self._store.write(replicas.leave, self.id)


class Pause:
    """A loop's pause: until somebody has work for it, but never longer than the poll."""

    def __init__(self, poll: float) -> None:
        self._poll = poll
        self._event = asyncio.Event()

    def set(self) -> None:
        """There may be work."""
        self._event.set()

    async def wait(self) -> None:
        """Return when there may be work, at the latest when the poll is due."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._poll):
                await self._event.wait()
        self._event.clear()
