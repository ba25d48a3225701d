"""Soundness: the database is looked through for damage at the start and now and then, beside all work."""

import asyncio
import logging
import time

from segue.core.contracts.database import Driver
from segue.errors import StoreError

log = logging.getLogger(__name__)

_PACE = 3600.0
_SHARE = 100
"""Looking takes at most one part of so many of the time, however large the database is."""
_AGAIN = 60.0
"""Seconds until a damaged database is looked at again: whoever mends it wants to know."""


class Soundness:
    """Knows what is damaged until that is over."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.trouble = ""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            started = time.monotonic()
            await self.once()
            took = time.monotonic() - started
            await asyncio.sleep(_AGAIN if self.trouble else max(_PACE, _SHARE * took))

    async def once(self) -> None:
        """Look once; a database that can't be looked at is in the words of whoever writes to it."""
        try:
            found = await self._driver.damage()
        except StoreError as error:
            log.warning("the database can't be looked through for damage: %s", error)
            return
        if found and not self.trouble:
            log.error("%s", found)
        self.trouble = found
