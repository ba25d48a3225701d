"""Releases sessions and deliveries that this replica holds in the database without working on them.

That happens when a commit takes effect and its answer is lost: the next try finds nothing to take. Nobody else would
free them, since this replica is alive.
"""

import asyncio
import logging
from collections.abc import Collection

from segue.changes.exchange import replicas
from segue.changes.exchange.replicas import HeldDelivery, HeldSession
from segue.runtime.outbox import Outbox
from segue.runtime.parts import Ground
from segue.runtime.replica import Pause
from segue.runtime.turns.turns import Turns

log = logging.getLogger(__name__)

_AGAIN = 0.25
"""Seconds between two looks at something that may be stranded."""


class Stranded:
    """Compares what this replica holds with what it works on, at each beat and after each commit nobody heard of.

    Law: something is stranded if two looks find it held and unworked, and every write that was under way at the first
    look is over at the second. A write that is still under way may yet bring the work.
    """

    def __init__(self, ground: Ground, turns: Turns, outboxes: Collection[Outbox]) -> None:
        self._store = ground.store
        self._replica = ground.replica
        self._turns = turns
        self._outboxes = outboxes
        self._seen: frozenset[HeldSession | HeldDelivery] = frozenset()
        self._writes: frozenset[object] = frozenset()
        """Writes that were under way when those were first seen."""
        self._wake = Pause(ground.replica.lease / 3)
        ground.store.unheard = self._wake.set

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.look()
            if self._seen:
                await asyncio.sleep(_AGAIN)
            else:
                await self._wake.wait()

    async def look(self) -> None:
        """Stop turns that somebody wants to end, and release what the look before this one has found already."""
        me = self._replica.id
        for session in await self._store.read(replicas.stopped, me):
            # The hint that says so may be lost.
            await self._turns.look(session)
        held = await self._store.read(replicas.held, me)
        sessions, sending = self._turns.sessions, frozenset().union(*(outbox.sending for outbox in self._outboxes))
        idle = frozenset(
            each for each in held if each.id not in (sessions if isinstance(each, HeldSession) else sending)
        )
        if self._writes & self._store.under_way:
            self._seen &= idle
            return
        if stranded := self._seen & idle:
            log.warning(
                "released %d sessions or deliveries that this replica held without working on them: %s",
                await self._store.write(replicas.release, me, stranded),
                ", ".join(str(each.id) for each in stranded),
            )
        self._seen, self._writes = idle - stranded, frozenset(self._store.under_way)
