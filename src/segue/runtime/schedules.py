"""Scheduled work: run when it is due, its answers brought to where they belong."""

import logging
from collections.abc import AsyncIterator
from datetime import datetime
from zoneinfo import ZoneInfo

from segue.changes.exchange import schedules
from segue.changes.exchange.planner import Planner
from segue.changes.exchange.schedules import Schedule, Still, Time, Unkept
from segue.core import schedules as times
from segue.core.contracts.database import Clock
from segue.core.contracts.files import RESULTS, FileStore
from segue.core.settings import GatewaySettings
from segue.core.values import Moment
from segue.errors import StoreError
from segue.runtime.replica import Pause
from segue.runtime.retrying import Patient

log = logging.getLogger(__name__)

_BATCH = 100


class Schedules:
    """Runs scheduled work when it is due; any number of replicas may, each time is one turn."""

    def __init__(
        self,
        store: Patient,
        planner: Planner,
        settings: GatewaySettings,
        still: Still,
        clock: Clock,
        files: FileStore | None,
    ) -> None:
        self._store = store
        self._still = still
        self._planner = planner
        self._files = files
        self._clock = clock
        self.wake = Pause(settings.poll)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.once()
            await self.wake.wait()

    async def once(self) -> int:
        """Run what is due by now, and store the results of what was answered; returns how many turns were queued."""
        queued = 0
        while found := await self._store.read(schedules.due, at := self._clock(), _BATCH):
            for schedule in found:
                if await self._run(schedule, at):
                    queued += 1
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
        for run in await self._store.read(schedules.unkept, _BATCH):
            try:
                await files.put(result_path(run.schedule, run.due, run.zone), _result(run))
            except StoreError as error:
                # It stays on the list, and is stored when the disk or the database takes it.
                log.warning("the result of scheduled work %s can't be stored: %s", run.schedule, error)
                return
            await self._store.write(schedules.keep, run, self._clock())


def result_path(schedule: str, due: Moment, zone: str) -> str:
    """The path of the result of a run, which tells when it was due."""
    return f"{RESULTS}/{schedule}/{datetime.fromtimestamp(due, ZoneInfo(zone)):%Y-%m-%dT%H%M%z}.md"


async def _result(run: Unkept) -> AsyncIterator[bytes]:
    """The result of a run; stored again it is the same."""
    yield f"# {' '.join(run.task.split())}\n\n{run.text}\n".encode()
