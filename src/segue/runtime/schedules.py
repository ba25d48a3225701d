"""Scheduled work: run when it is due, its answers brought to where they belong."""

import asyncio
import logging
import os
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from segue.changes.exchange import schedules
from segue.changes.exchange.planner import Planner
from segue.changes.exchange.schedules import Schedule, Still, Time, Unkept
from segue.core import schedules as times
from segue.core.contracts.database import Clock
from segue.core.settings import GatewaySettings
from segue.core.values import Moment
from segue.runtime.replica import Pause
from segue.runtime.retrying import Patient

log = logging.getLogger(__name__)

FOLDER = "scheduled"
"""In the data folder: where scheduled work leaves its files."""
_BATCH = 100


class Schedules:
    """Runs scheduled work when it is due; any number of replicas may, each time is one turn."""

    def __init__(self, store: Patient, planner: Planner, settings: GatewaySettings, still: Still, clock: Clock) -> None:
        self._store = store
        self._still = still
        self._planner = planner
        self._folder = Path(settings.data) / FOLDER if settings.data else None
        self._clock = clock
        self.wake = Pause(settings.poll)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self.once()
            await self.wake.wait()

    async def once(self) -> int:
        """Run what is due by now, and write the files of what was answered; returns how many turns were queued."""
        queued = 0
        while found := await self._store.read(schedules.due, at := self._clock(), _BATCH):
            for schedule in found:
                if await self._run(schedule, at):
                    queued += 1
        if self._folder is not None:
            await self._write_files(self._folder)
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

    async def _write_files(self, folder: Path) -> None:
        for run in await self._store.read(schedules.unkept, _BATCH):
            try:
                await asyncio.to_thread(_write, folder, run)
            except OSError as error:
                # It stays on the list, and is written when the disk can be.
                log.warning("scheduled work %s can't leave its file: %s", run.schedule, error.strerror)
                return
            await self._store.write(schedules.keep, run, self._clock())


def _write(folder: Path, run: Unkept) -> None:
    """Write the file of a run; written again it is the same file."""
    at = datetime.fromtimestamp(run.due, ZoneInfo(run.zone))
    place = folder / run.schedule / f"{at:%Y-%m-%dT%H%M%z}.md"
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    half = place.with_suffix(f".{os.getpid()}.half")
    half.write_text(f"# {' '.join(run.task.split())}\n\n{run.text}\n", "utf-8")
    half.replace(place)
