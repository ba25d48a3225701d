"""This process among those that share the database: alive while it beats."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator

from segue.changes.exchange import replicas
from segue.core.contracts.database import Ids
from segue.database.statements import newest_version
from segue.errors import Fenced
from segue.runtime.retrying import Patient

log = logging.getLogger(__name__)

NEWER = (
    "a newer Segue brought the database to version %d; this one knows versions up to %d and goes on beside it, but "
    "won't start again. Upgrade it, too"
)
_MARGIN = 0.2
"""Of the lease, kept back for writing down what a call did."""


class Replica:
    """A lease on being alive; what a replica that stopped beating held goes to the others."""

    def __init__(self, store: Patient, ids: Ids, lease: float) -> None:
        self._store = store
        self._ids = ids
        self.lease = lease
        self.id = ""
        self._until = 0.0
        self._version = newest_version()
        self._calls: dict[asyncio.Timeout, float] = {}
        """Calls under way, and when each has lasted as long as it may, by the event loop's clock."""

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
        found = await self._store.write(replicas.beat, self.id, self.lease)
        self._until = started + self.lease
        if found.version > self._version:
            # Migrations only add, so that replicas can be upgraded one after the other.
            log.warning(NEWER, found.version, newest_version())
            self._version = found.version
        for call, longest in self._calls.items():
            if not call.expired():
                call.reschedule(min(longest, asyncio.get_running_loop().time() + self.spare))

    @contextlib.asynccontextmanager
    async def calling(self, seconds: float) -> AsyncIterator[None]:
        """A call to a platform: as long as this replica lives, but no longer than so many seconds.

        Raises `TimeoutError` early enough before the lease ends to write down what became of the call.
        """
        now = asyncio.get_running_loop().time()
        async with asyncio.timeout_at(now + min(seconds, self.spare)) as call:
            self._calls[call] = now + seconds
            try:
                yield
            finally:
                del self._calls[call]

    @property
    def spare(self) -> float:
        """Seconds that are left for calls, if no beat comes."""
        return self.left - self.lease * _MARGIN

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
        self.set = self._event.set
        """Says that there may be work."""

    async def wait(self) -> None:
        """Return when there may be work, at the latest when the poll is due; others always go on meanwhile."""
        await asyncio.sleep(0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._poll):
                await self._event.wait()
        self._event.clear()
