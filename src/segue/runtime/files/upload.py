"""Moves the files of a data folder into the database: those of a time when each machine kept its own.

Law: a copy leaves the folder once the database has it, or once it is known that nothing names it.
"""

import logging
from pathlib import Path

from segue.changes.exchange import schedules
from segue.core.contracts.database import Driver
from segue.core.contracts.files import FILES, RESULTS, FileStore
from segue.core.values import LAST_MOMENT
from segue.errors import Invalid
from segue.runtime.files.folder import Folder
from segue.runtime.files.leftovers import Leftovers
from segue.runtime.retrying import Patient
from segue.runtime.schedules import result_path

log = logging.getLogger(__name__)

_GRACE = 60.0
"""Seconds for which a file may wait for the message that names it: a gateway of an earlier version may run here."""


async def upload_folder(data: Path, files: FileStore, driver: Driver) -> int:
    """Move the files of a data folder into a store; returns how many are there now.

    A file that nothing names is deleted: what it came with was forgotten, perhaps while this machine was away.
    """
    folder, store = Folder(data), Patient(driver)
    paths = await folder.list_kept(FILES, 0.0, LAST_MOMENT)
    results = await folder.list_kept(RESULTS, 0.0, LAST_MOMENT)
    if not paths and not results:
        return 0
    log.info("moving %d files of the data folder into the database", len(paths) + len(results))
    unnamed = set(await Leftovers(store, folder, lambda _: None).unnamed(paths))
    for where in unnamed:
        await folder.delete(where, await folder.now() - _GRACE)
    forgotten = await _forgotten(results, store)
    for where in forgotten:
        await folder.delete(where, LAST_MOMENT)
    moved = 0
    for where in (*paths, *results):
        if where in unnamed or where in forgotten:
            continue
        try:
            await files.put(where, folder.content(where))
        except Invalid as error:
            log.warning("%s stays in the data folder: %s", where, error)
        else:
            await folder.delete(where, LAST_MOMENT)
            moved += 1
    log.info("%d files of the data folder are in the database now", moved)
    return moved


async def _forgotten(results: list[str], store: Patient) -> set[str]:
    """The results of runs whose answers were forgotten."""
    found: set[str] = set()
    for schedule in {where.split("/")[1] for where in results}:
        for run in await store.read(schedules.list_answered, schedule):
            where = result_path(run.schedule, run.due, run.zone)
            if where in results and not run.text:
                found.add(where)
    return found
