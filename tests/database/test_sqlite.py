"""SQLite alone: commits that are shared, disks that fail, files that aren't what they should be."""

import asyncio
import contextlib
import functools
import os
import random
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, cast

import apsw
import pytest

from segue.core.contracts.database import Transaction
from segue.core.contracts.probes import Point
from segue.database.sqlite import Sqlite
from segue.database.sqlite_file import SqliteFile
from segue.database.statements import Compiled
from segue.errors import (
    Fenced,
    OutcomeUnknown,
    StoreConflict,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreUnreachable,
)
from tests.changes.small import Gate, ask, change, everything, open_sqlite, put, put_after, put_then_give_up
from tests.database.child import NOBODY
from tests.database.disk import Disk

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "segue.db"


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.unregister()


async def rows(path: Path) -> dict[int, str]:
    """What the file holds for a process that opens it now, on a disk that works."""
    db = await open_sqlite(path)
    found = await db.read(everything)
    await db.close()
    return found


async def test_64_writes_that_queued_share_one_sync(path: Path, disk: Disk) -> None:
    gate = Gate()
    db = await open_sqlite(path, probe=gate, vfs=disk.name)
    await db.write(change, 0, "the log has begun")
    before = disk.done["sync"]
    outcomes = await gate.group(db, [functools.partial(put, n) for n in range(1, 65)])
    assert outcomes == ["word"] * 64
    assert disk.done["sync"] - before == 2  # the write that was held, and the 64
    await db.close()
    assert len(await rows(path)) == 65


async def test_a_write_that_changes_nothing_costs_no_sync(path: Path, disk: Disk) -> None:
    db = await open_sqlite(path, vfs=disk.name)
    before = disk.done["sync"]
    await db.write(everything)
    with pytest.raises(Fenced):
        await db.write(put_then_give_up, 1)
    assert disk.done["sync"] == before
    await db.close()


async def test_nobody_is_answered_before_the_commit(path: Path) -> None:
    gate = Gate()
    db = await open_sqlite(path, probe=gate)
    gate.hold(Point.WRITE_COMMITTED)
    write = asyncio.create_task(db.write(put, 1))
    await asyncio.to_thread(gate.reached.wait)
    assert not write.done()
    assert await db.read(everything) == {0: "first", 1: "word"}
    gate.opened.set()
    assert await write == "word"
    await db.close()


async def test_readers_see_nothing_of_a_write_that_is_not_committed(path: Path) -> None:
    gate = Gate()
    db = await open_sqlite(path, probe=gate)
    gate.hold(Point.WRITE_DONE)
    write = asyncio.create_task(db.write(put, 1))
    await asyncio.to_thread(gate.reached.wait)
    assert await db.read(everything) == {0: "first"}
    gate.opened.set()
    await write
    await db.close()


async def test_a_read_is_one_snapshot(path: Path) -> None:
    db = await open_sqlite(path)
    looked, written = threading.Event(), threading.Event()

    def look_twice() -> Transaction[tuple[dict[int, str], dict[int, str]]]:
        first = yield from everything()
        looked.set()
        written.wait()
        return first, (yield from everything())

    looking = asyncio.create_task(db.read(look_twice))
    await asyncio.to_thread(looked.wait)
    await db.write(put, 1)
    written.set()
    assert await looking == ({0: "first"}, {0: "first"})
    await db.close()


async def test_one_that_fails_harms_no_neighbour(path: Path) -> None:
    gate = Gate()
    db = await open_sqlite(path, probe=gate)
    overtaken: list[int] = []
    outcomes = await gate.group(
        db,
        [
            functools.partial(put, 1),
            functools.partial(put_then_give_up, 2),
            functools.partial(put, 0),
            functools.partial(ask, "nonsense"),
            functools.partial(put_after, 3, overtaken, 1),
            functools.partial(put, 4),
        ],
    )
    kinds = [outcome if isinstance(outcome, str) else type(outcome) for outcome in outcomes]
    assert kinds == ["word", Fenced, StoreConflict, apsw.SQLError, "through", "word"]
    assert gate.seen.count(Point.WRITE_COMMITTED) == 3  # the held one, the group, and the one that was overtaken
    assert await db.read(everything) == {0: "held", 1: "word", 3: "word", 4: "word"}
    await db.close()


async def test_one_that_fails_before_it_changed_anything_makes_nobody_run_again(path: Path) -> None:
    gate = Gate()
    db = await open_sqlite(path, probe=gate)
    ran: list[int] = []

    def put_and_count(n: int) -> Transaction[str]:
        ran.append(n)
        return (yield from put(n))

    def look_then_give_up() -> Transaction[None]:
        yield from everything()
        raise Fenced("this")

    outcomes = await gate.group(
        db, [functools.partial(put_and_count, 1), look_then_give_up, functools.partial(put_and_count, 2)]
    )
    assert [type(outcome) for outcome in outcomes] == [str, Fenced, str]
    assert ran == [1, 2]
    await db.close()
    assert await rows(path) == {0: "held", 1: "word", 2: "word"}


@pytest.mark.parametrize("error", [apsw.IOError, apsw.FullError])
async def test_a_group_that_is_lost_runs_again_one_by_one(path: Path, disk: Disk, error: type[apsw.Error]) -> None:
    gate = Gate()
    db = await open_sqlite(path, probe=gate, vfs=disk.name)

    ran: list[int] = []

    def break_disk() -> Transaction[int]:
        yield from everything()
        ran.append(1)
        if len(ran) == 1:
            disk.fail(1, error)
        return len(ran)

    outcomes = await gate.group(db, [*(functools.partial(put, n) for n in range(1, 9)), break_disk])
    assert outcomes == ["word"] * 8 + [2]
    await db.close()
    assert await rows(path) == {0: "held"} | dict.fromkeys(range(1, 9), "word")


@pytest.mark.parametrize("error", [apsw.IOError, apsw.FullError])
async def test_whichever_operation_fails_nobody_is_told_a_lie(
    tmp_path: Path, disk: Disk, error: type[apsw.Error]
) -> None:
    failures = 0
    for which in range(1, 40):
        path = tmp_path / f"{which}.db"
        disk.heal()
        gate = Gate()
        db = await open_sqlite(path, probe=gate, vfs=disk.name)
        gate.hold(Point.WRITE_DONE)
        writes = [asyncio.create_task(db.write(put, n)) for n in range(1, 9)]
        await asyncio.to_thread(gate.reached.wait)
        disk.fail(which, error, times=6)
        gate.opened.set()
        outcomes = dict(enumerate(await asyncio.gather(*writes, return_exceptions=True), start=1))
        disk.heal()
        assert await db.write(put, 9) == "word"  # the driver lives on
        await db.close()
        found = await rows(path)
        for n, outcome in outcomes.items():
            if outcome == "word":
                assert n in found
            else:
                failures += 1
                assert isinstance(outcome, (StoreFull, StoreUnreachable, OutcomeUnknown))
                assert n not in found or isinstance(outcome, OutcomeUnknown)
    assert failures


async def test_a_disk_that_breaks_during_the_commit_leaves_the_outcome_unknown(path: Path, disk: Disk) -> None:
    db = await open_sqlite(path, vfs=disk.name)
    disk.guard = lambda what: disk_fails(what, "sync")
    with pytest.raises(OutcomeUnknown, match="Look before"):
        await db.write(put, 1)
    disk.heal()
    assert await db.write(put, 2) == "word"
    await db.close()


def disk_fails(what: str, which: str) -> None:
    if what == which:
        raise apsw.IOError("this disk can't sync")


async def test_a_full_disk_is_named_and_what_was_there_stays(path: Path, disk: Disk) -> None:
    db = await open_sqlite(path, vfs=disk.name)
    await db.write(put, 1)
    disk.fail(1, apsw.FullError, times=1000)
    with pytest.raises(StoreFull, match=r"segue\.db.*Make room"):
        await db.write(put, 2)
    assert await db.read(everything) == {0: "first", 1: "word"}
    disk.heal()
    assert await db.write(put, 2) == "word"
    await db.close()


async def test_the_writer_outlives_an_event_loop_that_closed(path: Path) -> None:
    gate = Gate()

    def in_a_loop_of_its_own() -> Sqlite:
        loop = asyncio.new_event_loop()
        db = loop.run_until_complete(open_sqlite(path, probe=gate))
        gate.hold(Point.WRITE_DONE)
        write = loop.create_task(db.write(put, 1))
        loop.run_until_complete(asyncio.to_thread(gate.reached.wait))
        write.cancel()
        loop.run_until_complete(asyncio.wait({write}))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
        return db

    db = await asyncio.to_thread(in_a_loop_of_its_own)
    gate.opened.set()
    assert await db.write(put, 2) == "word"
    assert await db.read(everything) == {0: "first", 1: "word", 2: "word"}
    await db.close()


async def test_the_clock_can_be_another(path: Path) -> None:
    now = 5.0
    db = await Sqlite.open(path, queries={"now": Compiled("select segue_now()", ())}, steps=[], clock=lambda: now)
    assert await db.read(ask, "now") == [(5.0,)]
    now = 6.5
    assert await db.write(ask, "now") == [(6.5,)]
    await db.close()


def files(path: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir() if file.is_file()}


async def test_only_we_can_read_a_new_file(path: Path) -> None:
    db = await open_sqlite(path)
    await db.write(put, 1)
    assert files(path) == {"segue.db": 0o600, "segue.db-wal": 0o600, "segue.db-shm": 0o600}
    await db.close()
    # The log stays, so that a file without one is known to be a copy.
    assert files(path) == {"segue.db": 0o600, "segue.db-wal": 0o600, "segue.db-shm": 0o600}


async def test_a_file_that_somebody_holds_is_waited_for_then_named(path: Path) -> None:
    db = await open_sqlite(path, patience=0.05)
    holder = apsw.Connection(str(path))
    holder.execute("begin immediate")
    outcomes = await asyncio.gather(*(db.write(put, n) for n in range(1, 4)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreLocked] * 3
    assert await db.read(everything) == {0: "first"}
    holder.execute("rollback")
    assert await db.write(put, 1) == "word"
    holder.close()
    await db.close()


async def test_a_lock_that_is_let_go_in_time_is_had(path: Path) -> None:
    db = await open_sqlite(path, patience=600)
    holder = apsw.Connection(str(path))
    holder.execute("begin immediate")
    write = asyncio.create_task(db.write(put, 1))
    await db.read(everything)
    assert not write.done()
    holder.execute("rollback")
    assert await write == "word"
    holder.close()
    await db.close()


def test_an_empty_file_is_a_new_one(path: Path) -> None:
    path.touch()
    assert asyncio.run(rows(path)) == {0: "first"}


def sound(path: Path) -> None:
    """A database of ours with a few hundred pages."""

    async def fill() -> None:
        db = await open_sqlite(path)
        for n in range(1, 200):
            await db.write(put, n, "word " * 200)
        await db.close()

    asyncio.run(fill())


def damaged(path: Path, *, at: int) -> None:
    sound(path)
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xff" * (path.stat().st_size - at))


def foreign(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("create table bookmarks (address text)")
        other.execute("insert into bookmarks values ('here')")
        other.commit()


def foreign_by_its_number(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("pragma application_id = 7")


BAD: dict[str, tuple[Callable[[Path], object], type[StoreError], str]] = {
    "a folder": (Path.mkdir, StoreUnreachable, "is a folder. Name a file"),
    "text": (lambda path: path.write_text("Dear diary, today"), StoreCorrupt, "isn't a database. Move it aside"),
    "noise": (lambda path: path.write_bytes(random.Random(1).randbytes(65536)), StoreCorrupt, "isn't a database"),
    "a damaged header": (lambda path: damaged(path, at=16), StoreCorrupt, "Move it aside|restore a backup"),
    "a damaged schema": (lambda path: damaged(path, at=100), StoreCorrupt, "restore a backup"),
    "another program's": (foreign, StoreCorrupt, "another program. Name another file"),
    "another program's, empty": (foreign_by_its_number, StoreCorrupt, "another program. Name another file"),
    "a dead link": (lambda path: path.symlink_to(path.parent / "gone"), StoreUnreachable, "can't be opened"),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_is_no_file_of_ours_is_named_and_left_alone(path: Path, bad: str) -> None:
    make, kind, text = BAD[bad]
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(kind, match=f"(?s){re.escape(str(path))}.*({text})"):
        asyncio.run(open_sqlite(path))
    assert (path.read_bytes() if path.is_file() else None) == before


def test_damage_further_in_is_named_by_whoever_meets_it(path: Path) -> None:
    damaged(path, at=4096 * 4)

    async def use() -> None:
        db = await open_sqlite(path)
        try:
            with pytest.raises(StoreCorrupt, match="restore a backup"):
                await db.read(everything)
        finally:
            await db.close()

    asyncio.run(use())


@pytest.mark.parametrize("folder", ["missing", "file"])
def test_a_folder_that_is_not_there_is_named(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnreachable, match=re.escape(f"no folder {tmp_path / folder}.")):
        asyncio.run(open_sqlite(tmp_path / folder / "segue.db"))


async def test_a_file_that_somebody_holds_can_not_be_opened_for_now(path: Path) -> None:
    holder = apsw.Connection(str(path))
    holder.execute("begin exclusive; create table t (n)")
    with pytest.raises(StoreLocked, match="Try again"):
        await open_sqlite(path, patience=0.05)
    holder.execute("rollback")
    holder.close()
    assert await rows(path) == {0: "first"}


class Reluctant:
    """A connection that answers the switch to a write-ahead log with these, one after the other."""

    def __init__(self, *answers: str | apsw.Error) -> None:
        self.left = list(answers)

    def execute(self, _: str) -> list[tuple[str]]:
        answer = self.left.pop(0)
        if isinstance(answer, apsw.Error):
            raise answer
        return [(answer,)]


def switch(path: Path, patience: float, connection: Reluctant) -> None:
    SqliteFile(path, time.time, patience, None)._log_ahead(cast("apsw.Connection", connection))


def test_the_switch_to_a_log_is_tried_until_nobody_is_in_the_way(path: Path) -> None:
    connection = Reluctant(apsw.BusyError(), "delete", apsw.BusyError(), "wal")
    switch(path, 600, connection)
    assert connection.left == []
    with pytest.raises(apsw.BusyError):
        switch(path, -1, Reluctant(apsw.BusyError()))


def test_a_file_system_that_can_not_share_memory_is_named(path: Path) -> None:
    with pytest.raises(StoreUnreachable, match="Use a local disk"):
        switch(path, -1, Reluctant("delete"))


@pytest.mark.parametrize("error", [apsw.FullError, apsw.IOError])
async def test_a_disk_that_fails_while_the_file_is_made_can_be_tried_again(
    tmp_path: Path, disk: Disk, error: type[apsw.Error]
) -> None:
    opened = []
    for which in range(1, 40):
        path = tmp_path / f"{which}.db"
        disk.fail(which, error, times=1000)
        try:
            db = await open_sqlite(path, vfs=disk.name)
        except (StoreFull, StoreUnreachable):
            disk.heal()
        else:
            opened.append(which)
            disk.heal()
            await db.close()
        assert await rows(path) == {0: "first"}
    assert 1 < min(opened) < 39


class Writable(NamedTuple):
    """What whoever opens the file may write to."""

    file: bool
    folder: bool


@pytest.mark.parametrize("writable", [Writable(file=False, folder=True), Writable(file=True, folder=False)])
def test_without_permission_to_write_it_says_so(writable: Writable) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "segue.db"
        asyncio.run(rows(path))
        shutil.rmtree(f"{path}-wake")
        for log in Path(folder).glob("*.db-*"):
            log.unlink()
        before = path.read_bytes()
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            os.chown(path, NOBODY, NOBODY)
        path.chmod(0o600 if writable.file else 0o400)
        Path(folder).chmod(0o700 if writable.folder else 0o500)
        said = plainly(path)
        Path(folder).chmod(0o700)
        assert said.startswith("StoreReadOnly: ")
        assert folder in said
        assert "write permission" in said
        assert path.read_bytes() == before


def test_a_new_file_in_a_folder_that_can_not_be_written_to() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        said = plainly(Path(folder) / "segue.db")
        Path(folder).chmod(0o700)
        assert said.startswith("StoreReadOnly: ")
        assert folder in said


def test_with_permission_to_write_it_works() -> None:
    """The two tests above can tell."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        assert plainly(Path(folder) / "segue.db") == "opened\ndone"


def plainly(path: Path) -> str:
    command = [sys.executable, "-m", "tests.database.child", "plainly", str(path)]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("replaced", [False, True], ids=["deleted", "replaced"])
async def test_a_log_that_is_gone_stops_writing_and_is_kept_by_a_clean_end(tmp_path: Path, *, replaced: bool) -> None:
    path = tmp_path / "segue.db"
    log = Path(f"{path}-wal")
    db = await open_sqlite(path)
    await db.write(put, 1)
    await asyncio.to_thread(log.unlink)
    if replaced:
        await asyncio.to_thread(log.write_bytes, b"")
    with pytest.raises(StoreUnreachable, match=r"segue.db-wal was deleted or replaced while it was open. Stop Segue"):
        await db.write(put, 2)
    await db.close()
    if replaced:
        await asyncio.to_thread(log.unlink)
    db = await open_sqlite(path)
    assert await db.read(everything) == {0: "first", 1: "word"}
    await db.close()
