"""Whoever looks at a terminal or a page here, told to the other replicas: a window is open in one process only."""

from __future__ import annotations

from collections.abc import Iterable

from segue.adapters.local import Local
from segue.core.contracts import Adapter
from segue.core.lanes import Address
from segue.runtime.patience import Patient
from segue.runtime.replica import Replica
from segue.runtime.wakes import Wake
from segue.store import windows


class Watched:
    """Writes down which chats somebody looks at here, as soon as that changes."""

    def __init__(self, store: Patient, adapters: Iterable[Adapter], replica: Replica, poll: float) -> None:
        self._store = store
        self._replica = replica
        self._wake = Wake(poll)
        self._local = [adapter for adapter in adapters if isinstance(adapter, Local)]
        for local in self._local:
            local.changed = self._wake.set

    async def run(self) -> None:
        """Tell until cancelled; anew under each id that this replica takes."""
        told: set[Address] = set()
        while True:
            chats = {Address(local.platform, local.account, chat=chat) for local in self._local for chat in local.chats}
            if chats != told:
                await self._store.write(windows.tell, self._replica.id, chats)
                told = chats
            await self._wake.wait()
