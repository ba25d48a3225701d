"""The log of the SQLite file: folded beside the writer, and never longer than it may be."""

import asyncio
import threading
from collections import Counter
from pathlib import Path

import apsw
import pytest

from segue.database import sqlite_log
from segue.database.sqlite import Sqlite
from segue.database.sqlite_log import LogFolder
from tests.changes.small import change, everything, open_sqlite, put
from tests.database.disk import Disk, _File

PAGES = 20
_PAGE = 4096


class Watched(Disk):
    """A disk that knows which thread synced the database itself, not its log."""

    def __init__(self) -> None:
        self.synced: Counter[str] = Counter()
        super().__init__()

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        file = _WatchedFile(self, name, flags)
        file.counts = self.synced if flags[0] & apsw.SQLITE_OPEN_MAIN_DB else Counter()
        return file


class _WatchedFile(_File):
    counts: Counter[str]

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        self.counts[threading.current_thread().name] += 1
        super().xSync(flags)


async def write(db: Sqlite, count: int) -> None:
    for n in range(count):
        await db.write(change, 0, f"word {n}")


async def test_the_file_is_synced_beside_the_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_log, "PAGES", PAGES)
    disk = Watched()
    db = await open_sqlite(tmp_path / "segue.db", vfs=disk.name)
    disk.synced.clear()
    while disk.synced["segue log"] < 3:
        await write(db, 10)
    assert disk.synced["segue writer"] == 0
    await db.close()
    again = await open_sqlite(tmp_path / "segue.db", vfs=disk.name)
    await again.write(put, 1)
    assert set(await again.read(everything)) == {0, 1}
    await again.close()
    disk.unregister()


async def test_a_writer_who_never_pauses_folds_a_log_that_is_long_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_log, "MOST", PAGES)
    monkeypatch.setattr(LogFolder, "_serve", lambda _: None)
    db = await open_sqlite(tmp_path / "segue.db")
    await write(db, 20 * PAGES)
    assert (tmp_path / "segue.db-wal").stat().st_size < 4 * PAGES * _PAGE
    await db.close()


async def test_a_log_that_cannot_be_folded_is_told_of_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sqlite_log, "PAGES", PAGES)
    disk = Watched()
    db = await open_sqlite(tmp_path / "segue.db", vfs=disk.name)

    def guard(what: str) -> None:
        if what == "sync" and threading.current_thread().name == "segue log":
            raise apsw.IOError("this disk syncs nothing")

    disk.guard = guard
    async with asyncio.timeout(60):
        while "couldn't be folded" not in caplog.text:
            await write(db, 10)
    disk.heal()
    disk.synced.clear()
    async with asyncio.timeout(60):
        while not disk.synced["segue log"]:
            await write(db, 10)
    await write(db, 1)
    assert (await db.read(everything))[0] == "word 0"
    await db.close()
    disk.unregister()


def test_trouble_with_the_log_is_no_trouble_of_the_commit_that_made_it_grow(tmp_path: Path) -> None:
    folder = LogFolder(apsw.Connection(str(tmp_path / "segue.db")))
    gone = apsw.Connection(str(tmp_path / "segue.db"))
    gone.close()
    assert folder.grown(gone, "main", sqlite_log.MOST) == apsw.SQLITE_OK
    folder.close()
