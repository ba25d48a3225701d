"""Leftovers: kept files that nothing names, such as after a crash between a file and its message.

Law: a file is named by a row soon after it was kept, or never. So one that is older than the grace and that no row
names belongs to nobody. Keeping the same content again makes it young again, and both happen under its folder's lock.
"""

import asyncio
import fcntl
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from segue.changes.forgetting import named_files
from segue.changes.forgetting.named_files import Naming
from segue.core.contracts.database import Clock
from segue.core.values import Moment
from segue.runtime.files import FOLDER, HALF, locked
from segue.runtime.retrying import Patient

GRACE = 86400.0
"""Seconds for which a file is kept that nothing names: an export that couldn't be sent is fetched by then."""
_MARK = "swept"
"""A file whose time says up to when every other one was found named."""
_PACE = 3600.0


class Leftovers:
    """Deletes what nobody names from a data folder; any number of replicas may look at the same one."""

    def __init__(self, store: Patient, data: Path, clock: Clock, swept: Callable[[int], None]) -> None:
        self._store = store
        self._data = data
        self._clock = clock
        self._swept = swept

    async def run(self) -> None:
        """Look once an hour until cancelled."""
        while True:
            await self.once()
            await asyncio.sleep(_PACE)

    async def once(self) -> int:
        """Look at the files that became old enough since the last look; returns how many are gone."""
        until = self._clock() - GRACE
        gone = await self.sweep(await asyncio.to_thread(self._aged, until), until)
        await asyncio.to_thread(self._keep_mark, until)
        return gone

    async def sweep(self, files: Iterable[Path], until: Moment) -> int:
        """Delete those of some files that nothing names and that weren't kept again since; returns how many."""
        unnamed = await self.unnamed(files)
        gone = await asyncio.to_thread(lambda: sum(_drop(path, until) for path in unnamed))
        self._swept(gone)
        return gone

    def kept_until(self, until: Moment, since: Moment = 0.0) -> list[Path]:
        """The whole files that were last kept in a time."""
        return [path for path in (self._data / FOLDER).glob("??/*") if since < (_kept_at(path) or 0.0) <= until]

    async def unnamed(self, files: Iterable[Path]) -> list[Path]:
        """The files that no row names. One that is new is found among the newest rows, so mostly few are read."""
        looked_for = {path.relative_to(self._data).as_posix(): path for path in files}
        for naming in Naming:
            after = None
            while looked_for:
                named, after = await self._store.read(named_files.page, naming, after)
                for where in named:
                    looked_for.pop(where, None)
                if after is None:
                    break
        return list(looked_for.values())

    def _aged(self, until: Moment) -> list[Path]:
        """The files that are old enough and weren't when somebody last looked; halves of old go at once."""
        folder = self._data / FOLDER
        self._swept(sum(_drop(half, until) for half in folder.glob(f"{HALF}*")))
        return self.kept_until(until, _kept_at(folder / _MARK) or 0.0)

    def _keep_mark(self, until: Moment) -> None:
        mark = self._data / FOLDER / _MARK
        if mark.parent.is_dir():
            mark.touch(mode=0o600)
            os.utime(mark, (until, until))


def _drop(path: Path, until: Moment) -> bool:
    """Delete a file unless it was kept again since; returns whether it is gone by this."""
    with locked(path.parent, fcntl.LOCK_EX):
        kept = _kept_at(path)
        if kept is None or kept > until:
            return False
        path.unlink()
        return True


def _kept_at(path: Path) -> Moment | None:
    """When a file was last kept; None if it is gone."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return None
