"""Scheduled work: run when it is due, its answers brought to where they belong."""

import logging
import time
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from segue.changes.exchange import schedules
from segue.changes.exchange.planner import Planner
from segue.changes.exchange.schedules import Schedule, Time, Unkept
from segue.changes.people.tokens import Still
from segue.core import schedules as times
from segue.core.contracts.files import RESULTS, FileStore
from segue.core.values import Moment
from segue.runtime.lifecycle.failures import ItemGuard
from segue.runtime.parts import Ground
from segue.runtime.replica import Pause

log = logging.getLogger(__name__)

_BATCH = 100
_STEP = 60.0
"""Seconds by which the wall clock is put back when somebody has corrected it."""


class Schedules:
    """Runs scheduled work when it is due; any number of replicas may, each time is one turn."""

    def __init__(self, ground: Ground, planner: Planner, still: Still, files: FileStore | None) -> None:
        self._store = ground.store
        self._due = ItemGuard("Scheduled work", ground.failures)
        self._results = ItemGuard("A result of scheduled work", ground.failures)
        self._still = still
        self._planner = planner
        self._files = files
        self._clock = ground.clock
        self._offset = float("inf")
        """Seconds between the wall clock and one that never steps, at the last look."""
        self.wake = Pause(ground.settings.poll)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.once()
            await self.wake.wait()

    async def once(self) -> int:
        """Run what is due by now, and store the results of what was answered; returns how many turns were queued."""
        queued = 0

        async def run(schedule: Schedule) -> None:
            nonlocal queued
            queued += await self._run(schedule, self._clock())

        async def due(count: int) -> Sequence[Schedule]:
            return await self._store.read(schedules.due, self._clock(), count)

        if self._stepped_back():
            await self._bring_forward()
        await self._due.exhaust(due, _BATCH, run, lambda schedule: schedule.id)
        if self._files is not None:
            await self._store_results(self._files)
        return queued

    async def _run(self, schedule: Schedule, at: Moment) -> bool:
        if schedule.due is None:
            return False
        due, missed = times.missed(schedule.line, schedule.zone, schedule.due, at)
        following = times.following(schedule.line, schedule.zone, max(due, at))
        late = times.late(schedule.zone, due, at, missed)
        note = f"Scheduled work is done now: {schedule.task}.{late}" if late else ""
        to = await self._store.read(self._planner.route, schedule)
        found = Time(schedule.due, due, missed, following)
        return await self._store.write(schedules.run, schedule, found, to, note, self._still, at)

    def _stepped_back(self) -> bool:
        """Return whether the clock may have been ahead: it is put back since the last look, or this is the first."""
        before, self._offset = self._offset, self._clock() - time.monotonic()
        return self._offset < before - _STEP

    async def _bring_forward(self) -> None:
        """Let work that ran while the clock was ahead be due again by its line from now on."""
        at, last = self._clock(), None

        async def bring_forward(schedule: Schedule) -> None:
            due = times.following(schedule.line, schedule.zone, at)
            if due is not None and schedule.due is not None and due < schedule.due:
                when = datetime.fromtimestamp(due, ZoneInfo(schedule.zone))
                log.warning("the clock was ahead: scheduled work %s is due at %s", schedule.id, when)
                await self._store.write(schedules.set_due, schedule, due)

        while found := await self._store.read(schedules.ahead, at, last, _BATCH):
            await self._due.for_each_item(found, bring_forward, lambda schedule: schedule.id)
            last = found[-1]

    async def _store_results(self, files: FileStore) -> None:
        async def store(run: Unkept) -> None:
            where = result_path(run.schedule, run.due, run.zone)
            await files.put(where, _result(run))
            if not await self._store.write(schedules.keep, run, self._clock()):
                # It was forgotten while it was stored: whoever cleaned up may have been here first.
                await files.delete(where, await files.now())

        found = await self._store.read(schedules.unkept, _BATCH + self._results.postponed)
        await self._results.for_each_item(found, store, lambda run: f"{run.schedule} {run.due}")


def result_path(schedule: str, due: Moment, zone: str) -> str:
    """The path of the result of a run, which tells when it was due."""
    return f"{RESULTS}/{schedule}/{datetime.fromtimestamp(due, ZoneInfo(zone)):%Y-%m-%dT%H%M%z}.md"


async def _result(run: Unkept) -> AsyncIterator[bytes]:
    """The result of a run; stored again it is the same."""
    yield f"# {' '.join(run.task.split())}\n\n{run.text}\n".encode()
