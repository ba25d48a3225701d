"""Leftovers: kept files that nothing names, such as after a crash between a file and its message.

Law: a file is named by a row soon after it was kept, or never. So one that is older than the grace and that no row
names belongs to nobody. Keeping the same content again makes it young again.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from segue.changes.forgetting import named_files
from segue.changes.forgetting.named_files import Naming
from segue.core.contracts.files import FILES, FileStore
from segue.core.values import Moment
from segue.errors import StoreError
from segue.runtime.retrying import Patient

log = logging.getLogger(__name__)

GRACE = 86400.0
"""Seconds for which a file is kept that nothing names: an export that couldn't be sent is fetched by then."""
_PACE = 3600.0


class Leftovers:
    """Deletes what nobody names from a file store; any number of replicas may look at the same one."""

    def __init__(self, store: Patient, files: FileStore, swept: Callable[[int], None]) -> None:
        self._store = store
        self._files = files
        self._swept = swept

    async def run(self) -> None:
        """Look once an hour until cancelled."""
        while True:
            await self.once()
            await asyncio.sleep(_PACE)

    async def once(self) -> int:
        """Look at the files that became old enough since the last look; returns how many are gone."""
        until = await self._files.now() - GRACE
        try:
            self._swept(await self._files.delete_halves(until))
            gone = await self.sweep(await self._files.list_kept(FILES, await self._files.read_mark(), until), until)
        except StoreError as error:
            log.warning("files that nothing names stay until the next look: %s", error)
            return 0
        await self._files.keep_mark(until)
        return gone

    async def sweep(self, files: Iterable[str], until: Moment) -> int:
        """Delete those of some files that nothing names and that weren't kept again since; returns how many.

        Raises the last `StoreError` after all others were tried.
        """
        gone, failed = 0, None
        for where in await self.unnamed(files):
            try:
                gone += await self._files.delete(where, until)
            except StoreError as error:
                failed = error
        self._swept(gone)
        if failed is not None:
            raise failed
        return gone

    async def unnamed(self, files: Iterable[str]) -> list[str]:
        """The files that no row names. One that is new is found among the newest rows, so mostly few are read."""
        looked_for = dict.fromkeys(files)
        for naming in Naming:
            after = None
            while looked_for:
                named, after = await self._store.read(named_files.page, naming, after)
                for where in named:
                    looked_for.pop(where, None)
                if after is None:
                    break
        return [*looked_for]
