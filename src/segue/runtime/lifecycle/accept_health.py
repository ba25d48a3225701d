"""Whether messages can be made durable, as health and readiness see it.

Law: a failed accept is a problem until one works, or until a write of its size does. A smaller write, such as a
heartbeat, may still fit on a disk that is full.
"""

import asyncio

from segue.changes import lockers
from segue.core.contracts.adapters import Accepted, Arrived
from segue.core.contracts.database import Driver
from segue.core.contracts.lockers import Thing
from segue.errors import Overloaded, StoreClosed, StoreError
from segue.runtime.inbox import Inbox

_ACCOUNT = "segue/probe/"
_PROBE = "x" * 65536
"""As much as a long message takes with its rows."""
_WRITTEN = (Accepted.NEW, Accepted.DEAD)
"""Outcomes for which something was written."""


class AcceptHealth:
    """Takes messages to the inbox, and knows whether it can keep them."""

    def __init__(self, inbox: Inbox, driver: Driver, name: str, pause: float) -> None:
        self._inbox = inbox
        self._driver = driver
        self._name = name
        self._pause = pause
        self._failed = asyncio.Event()
        self.problem = ""
        """Why the last message couldn't be kept; empty while messages can."""

    async def accept(self, arrived: Arrived) -> Accepted:
        """Make an arrival durable; when this returns it may be acknowledged."""
        try:
            outcome = await self._inbox.accept(arrived)
        except (Overloaded, StoreClosed):
            raise
        except StoreError as error:
            if self._inbox.open:
                self.problem = str(error)
                self._failed.set()
            raise
        if outcome in _WRITTEN:
            self._worked()
        return outcome

    async def run(self) -> None:
        """While messages can't be kept, look until cancelled whether they can again: it may be that nobody writes."""
        while True:
            await self._failed.wait()
            await asyncio.sleep(self._pause)
            try:
                await self._probe()
            except StoreError as error:
                self.problem = self.problem and str(error)
            else:
                self._worked()

    def _worked(self) -> None:
        self.problem = ""
        self._failed.clear()

    async def _probe(self) -> None:
        """Write as much as a message may take, and delete it again."""
        found = await self._driver.read(lockers.read, _ACCOUNT, self._name)
        version = found[self._name].version if found else 0
        await self._driver.write(lockers.keep, _ACCOUNT, {self._name: Thing(_PROBE, version)})
        await self._driver.write(lockers.keep, _ACCOUNT, {self._name: Thing("", version + 1)})
