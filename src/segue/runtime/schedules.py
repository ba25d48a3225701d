"""Scheduled work: run when it is due, its answers brought to where they belong."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from segue.changes.exchange import schedules
from segue.changes.exchange.planner import Planner
from segue.changes.exchange.schedules import Schedule, Still, Time, Unkept
from segue.core import schedules as times
from segue.core.contracts.files import RESULTS, FileStore
from segue.core.values import Moment
from segue.runtime.lifecycle.failures import ItemGuard
from segue.runtime.parts import Ground
from segue.runtime.replica import Pause

_BATCH = 100


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
        time = Time(schedule.due, due, missed, following)
        return await self._store.write(schedules.run, schedule, time, to, note, self._still, at)

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
