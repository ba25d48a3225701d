"""The driver of handoffs: it takes those that were asked for, opens a thread for each, and ends those that are late.

Law: whoever drives a handoff only leads it to where its session is bound in the new place and the opening turn waits.
From there the turn and its delivery carry it on, each under its own fence, so it can't be stuck with its driver.
"""

import asyncio
import logging
from functools import partial

from segue.changes.exchange import handoffs
from segue.changes.exchange.handoffs import Unclaimed
from segue.changes.places.destinations import must_be_known
from segue.core.contracts.adapters import OpensThreads
from segue.core.contracts.probes import Point
from segue.core.destinations import shown
from segue.core.handoffs import Driven
from segue.core.lanes import Address, Place, opened_in
from segue.core.messages import Opening
from segue.core.windows import ShowsWindows
from segue.errors import Fenced, Invalid, Refused, SendLater, SendNever, SendUnsure
from segue.runtime.lifecycle.failures import ItemGuard
from segue.runtime.parts import Ground
from segue.runtime.replica import Pause
from segue.runtime.threads import open_thread

log = logging.getLogger(__name__)

UNTITLED = "Our conversation"
_OPENING = 10.0
"""Seconds that a platform gets to open a thread; somebody waits, and is told its own reason after that."""


class Handoffs:
    """Drives the handoffs to the accounts that this replica speaks for."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._store = ground.store
        self._adapters = ground.adapters
        self._replica = ground.replica
        self._settings = ground.settings
        self._clock = ground.clock
        self._probe = ground.probe
        self._failures = ground.failures
        self._guard = ItemGuard("A handoff", ground.failures)
        self._driving: dict[str, asyncio.Task[None]] = {}
        self.wake = Pause(ground.settings.poll)

    async def run(self) -> None:
        """Drive what is asked for, and end what is late, until cancelled."""
        try:
            while True:
                await self._take()
                await self._sweep()
                await self.wake.wait()
        finally:
            tasks = list(self._driving.values())
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)

    async def _take(self) -> None:
        found = await self._store.read(handoffs.unclaimed, self._replica.id)
        await self._guard.for_each_item(found, self._claim, lambda unclaimed: unclaimed.id)

    async def _claim(self, unclaimed: Unclaimed) -> None:
        id = unclaimed.id
        if id in self._driving or not self._reaches(unclaimed.destination):
            return
        patience, at = self._settings.handoff, self._clock()
        driven = await self._store.write(handoffs.claim, id, self._replica.id, patience, at)
        if driven is not None:
            self._probe(Point.HANDOFF_CLAIMED)
            task = self._driving[id] = asyncio.create_task(self._drive(driven), name=f"handoff {id}")
            task.add_done_callback(partial(self._ended, id))

    def _reaches(self, destination: Address) -> bool:
        """Whether this replica can open something there; a terminal or a page is open in one process only."""
        adapter = self._adapters.get((destination.platform, destination.account))
        return adapter is not None and (not isinstance(adapter, ShowsWindows) or adapter.watched(destination.chat))

    def _ended(self, id: str, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            # It would fail again in the same way: its time ends it.
            self._failures.failed("A handoff", error, id)
        else:
            del self._driving[id]

    async def _drive(self, driven: Driven) -> None:
        found, place = driven.handoff, None
        try:
            place = await self._open(driven)
            self._probe(Point.HANDOFF_OPENED)
            await self._bind(driven, place)
            self._probe(Point.HANDOFF_BOUND)
        except Fenced as error:
            log.info("%s", error)
        except Invalid as error:
            await self._fail(driven, f"{error.problem}. {error.fix}".rstrip("."))
        except Refused as error:
            await self._fail(driven, str(error).rstrip("."))
        except (SendLater, SendUnsure) as error:
            await self._fail(driven, f"{found.place} opened no thread ({str(error).rstrip('.')})")
        if place is not None and place.opened:
            await self._store.write(handoffs.left_open, found.id, place.address, self._clock())

    async def _bind(self, driven: Driven, place: Place) -> None:
        found, routing = driven.handoff, self._settings.routing
        await self._store.read(must_be_known, found.by, place, routing.rules)
        opening = Opening(shown(found.origin.address.platform, found.origin.address.account), found.place)
        patience, at = self._settings.handoff, self._clock()
        await self._store.write(handoffs.open_in, driven, place, routing.rules, routing.limits, patience, opening, at)

    async def _fail(self, driven: Driven, why: str) -> None:
        try:
            await self._store.write(handoffs.fail, driven, why, self._clock())
        except Fenced as error:
            log.info("%s", error)

    async def _open(self, driven: Driven) -> Place:
        """The thread that it left when it went from there, else a new one; the place itself if there can be none."""
        found = driven.handoff
        there = Place(found.destination, found.kind)
        adapter = self._adapters[found.destination.platform, found.destination.account]
        if found.destination.thread or not isinstance(adapter, OpensThreads):
            return there
        former = await self._store.read(handoffs.former, found)
        if former is not None:
            return former
        named = driven.title or UNTITLED, f"handoff/{found.id}"
        try:
            patience = min(_OPENING, self._settings.handoff.progress)
            thread = await open_thread(adapter, found.destination, named, self._ground, patience)
        except SendNever as error:
            log.info("%s opens no thread: %s", found.place, error)
            return there
        return opened_in(there, thread)

    async def _sweep(self) -> None:
        async def expire(id: str) -> None:
            await self._store.write(handoffs.expire, id, self._clock())

        await self._guard.for_each_item(await self._store.read(handoffs.overdue, self._clock()), expire, str)
