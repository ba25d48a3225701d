"""The search index: makes what was said findable, behind the turns."""

import asyncio

from segue.changes.sessions import search
from segue.runtime.lifecycle.failures import Failures, ItemGuard
from segue.runtime.retrying import Patient

_PACE = 1.0
_BATCH = 64


class SearchIndexer:
    """Adds new entries to the index: all at once, or session by session once that failed."""

    def __init__(self, store: Patient, failures: Failures) -> None:
        self._store = store
        self._guard = ItemGuard("The search index", failures)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            if not await self.once():
                await asyncio.sleep(_PACE)

    async def once(self) -> int:
        """Add what isn't in the index yet; returns of how many sessions something was added."""
        batches = await self._store.read(search.unindexed, _BATCH + self._guard.postponed)
        with self._guard.guarding("all") as is_due:
            if is_due and batches:
                return await self._store.write(search.index, batches)
        return await self._guard.for_each_item(batches, self._add, lambda batch: batch.session)

    async def _add(self, batch: search.Batch) -> None:
        await self._store.write(search.index, [batch])
