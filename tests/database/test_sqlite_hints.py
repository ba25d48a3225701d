"""Processes on one SQLite file wake each other."""

import asyncio
import contextlib
import logging
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from segue.core.contracts.wakes import Topic, Wake
from segue.database.hints import Hints
from segue.database.sqlite_hints import Sockets
from segue.database.sqlite_threads import Inline, Job
from tests.changes.small import open_sqlite, put

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def database() -> Iterator[Path]:
    """A path that is short enough for sockets beside it."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "s.db"


@contextlib.asynccontextmanager
async def joined(database: Path) -> AsyncIterator[tuple[Hints, asyncio.Queue[str]]]:
    wake = Sockets.open(database)
    heard: asyncio.Queue[str] = asyncio.Queue()
    wake.listen(heard.put_nowait)
    try:
        yield wake, heard
    finally:
        await wake.close()


def folder(database: Path) -> Path:
    return database.with_name(f"{database.name}-wake")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def sockets(database: Path) -> list[Path]:
    return list(folder(database).iterdir())


def leave(path: Path) -> None:
    """Leave the socket of a process that died."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as dead:
        dead.bind(str(path))


def spoil(path: Path, how: str) -> None:
    match how:
        case "a file":
            path.touch()
        case "a link":
            (path.parent / "elsewhere").mkdir(mode=0o700)
            path.symlink_to(path.parent / "elsewhere")
        case _:
            path.mkdir()
            path.chmod(0o755)


async def test_each_hears_the_other_and_itself(database: Path) -> None:
    async with joined(database) as (one, heard_by_one), joined(database) as (_, heard_by_two):
        one.send("session 1")
        assert await heard_by_one.get() == "session 1"
        assert await heard_by_two.get() == "session 1"


async def test_those_on_another_file_hear_nothing(database: Path) -> None:
    other = database.with_name("t.db")
    async with joined(database) as (one, _), joined(other) as (two, heard_by_two):
        one.send("for the first file")
        two.send("for the second")
        assert await heard_by_two.get() == "for the second"


async def test_a_link_to_a_file_is_that_file(database: Path) -> None:
    link = database.with_name("link.db")
    link.symlink_to(database)
    async with joined(database) as (one, _), joined(link) as (_, heard_by_two):
        one.send("session")
        assert await heard_by_two.get() == "session"


async def test_the_folder_is_ours_alone_and_a_closed_socket_leaves_it(database: Path) -> None:
    async with joined(database):
        assert mode(folder(database)) == 0o700
        assert len(sockets(database)) == 1
    assert sockets(database) == []


async def test_the_socket_of_a_process_that_died_is_removed(database: Path) -> None:
    async with joined(database) as (one, _):
        leave(folder(database) / "dead")
        assert len(sockets(database)) == 2
        one.send("anybody?")
        assert len(sockets(database)) == 1


async def test_a_socket_that_is_still_being_made_is_left_alone(database: Path) -> None:
    async with joined(database) as (one, _):
        leave(folder(database) / ".unready")
        one.send("session")
        assert len(sockets(database)) == 2


async def test_a_neighbour_that_does_not_read_stops_nobody(database: Path) -> None:
    async with joined(database) as (one, _):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
            deaf.bind(f"{database}-wake/deaf")
            for n in range(5000):
                one.send(f"session {n}")
        assert len(sockets(database)) == 2


async def test_a_folder_that_vanished_stops_nobody(database: Path) -> None:
    async with joined(database) as (one, heard):
        shutil.rmtree(folder(database))
        one.send("session")
        assert await heard.get() == "session"


async def test_a_path_too_long_for_a_socket_falls_back_to_the_temporary_folder(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = database.parent / ("x" * 100)
    monkeypatch.setattr(tempfile, "tempdir", str(database.parent))
    async with joined(long) as (one, _), joined(long) as (_, heard_by_two):
        one.send("session")
        assert await heard_by_two.get() == "session"
    (found,) = database.parent.glob("segue-*")
    assert mode(found) == 0o700


@pytest.mark.parametrize("spoilt", ["open to all", "a file", "a link"])
async def test_without_a_private_folder_hints_stay_in_the_process(
    database: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, spoilt: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(database.parent / "nowhere"))
    spoil(folder(database), spoilt)
    with caplog.at_level(logging.WARNING):
        async with joined(database) as (one, heard):
            one.send("session")
            assert await heard.get() == "session"
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert str(database) in caplog.text


async def test_two_processes_wake_each_other(database: Path) -> None:
    db = await open_sqlite(database)
    heard: asyncio.Queue[str] = asyncio.Queue()
    db.listen(heard.put_nowait)
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.database.child", "echo", str(database)), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    assert await child.stdout.readline() == b"ready\n"
    for _ in range(3):
        await db.hint("ask")
        assert await heard.get() == "ask"
        async with asyncio.timeout(60):
            assert await heard.get() == "answer"
    child.kill()
    await child.wait()
    assert len(sockets(database)) == 2
    await db.hint("ask")
    assert len(sockets(database)) == 1
    await db.close()


async def test_a_folder_that_cannot_be_listed_stops_nobody(database: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with joined(database) as (one, heard):
        shutil.rmtree(folder(database))
        folder(database).touch()
        one.send("session")
        assert await heard.get() == "session"
    assert "can't be woken now" in caplog.text
    folder(database).unlink()


async def test_a_commit_is_answered_though_its_wake_up_fails(caplog: pytest.LogCaptureFixture) -> None:
    class Done:
        def work(self, jobs: list[Job]) -> None:
            for job in jobs:
                job.result, job.wakes = "done", [Wake(Topic.TURNS)]

        def close(self) -> None: ...

    def failing(_wake: Wake) -> None:
        raise RuntimeError("nobody foresaw it")

    jobs = [Job(put, (n,), {}, failing) for n in range(2)]
    for job in jobs:
        Inline(Done()).submit(job)
    assert [await job.future for job in jobs] == ["done", "done"]
    assert caplog.text.count("nobody foresaw it") >= 2
