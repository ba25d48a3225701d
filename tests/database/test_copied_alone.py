"""A copy of the SQLite file alone, made while a gateway runs, is noticed; a whole copy and a closed one are fine."""

import asyncio
import json
import os
import shutil
import sqlite3
import time
from contextlib import closing
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from click.testing import CliRunner

from segue import open_store
from segue.changes.rows import first
from segue.cli.main import main
from segue.database.statements import q
from segue.errors import StoreCorrupt
from segue.testing.agents import EchoAgent
from segue.testing.personas import WhatsApp
from tests.forge import kill, start
from tests.in_process import gateway_on
from tests.runtime.test_poison import arrival
from tests.today import file_of_today


async def _run(where: str, under_load: Connection) -> None:
    platform = WhatsApp()
    async with gateway_on(where, EchoAgent(), platform, poll=1.0, lease=1.0) as running:
        await running._soundness.once()
        for n in range(1_000_000):
            await running.accept(arrival(platform, n, f"message {n}"))
            if n == 20:
                under_load.send(None)


def writes_on(where: str, under_load: Connection) -> None:
    """A gateway that takes messages in until it is killed, and tells when it has taken some."""
    asyncio.run(_run(where, under_load))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder."""
    monkeypatch.setenv("SEGUE_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def run(*words: str) -> str:
    done = CliRunner().invoke(main, [*words])
    return f"{done.exit_code}: {done.output.strip()}"


def noted_beats(path: Path) -> int:
    """How many heartbeats are noted beside a file."""
    noted = Path(f"{path}-beats")
    return int(json.loads(noted.read_bytes())["beats"]) if noted.exists() else 0


def copied_under_load(source: Path, to: Path, *endings: str, beats: int = 0) -> None:
    """Copy a database's files while a gateway of its own process writes to it, and kill that so many beats later."""
    here, there = Pipe()
    gateway = start(writes_on, str(source), there)
    there.close()
    try:
        here.recv()
        for ending in endings:
            shutil.copyfile(f"{source}{ending}", f"{to}{ending}")
        last = noted_beats(source) + beats
        while noted_beats(source) < last:
            time.sleep(0.01)
    finally:
        kill(gateway)
        here.close()


async def test_a_copy_of_the_file_alone_is_refused_in_words_until_somebody_takes_it_as_it_is(
    home: Path, tmp_path: Path
) -> None:
    await asyncio.to_thread(copied_under_load, tmp_path / "other.db", home / "segue.db", "")
    with pytest.raises(StoreCorrupt, match="copied while a gateway ran, without"):
        await open_store(home / "segue.db")
    doctor = await asyncio.to_thread(run, "doctor")
    assert "copied while a gateway ran, without segue.db-wal" in doctor
    assert "segue restore" in doctor
    with pytest.raises(StoreCorrupt):
        await open_store(home / "segue.db")
    restored = await asyncio.to_thread(run, "restore")
    assert "without its log: what was said last isn't in it" in restored
    async with await open_store(home / "segue.db"):
        """It goes on."""


async def test_the_original_goes_on_after_a_kill_and_so_does_a_copy_with_its_log(tmp_path: Path) -> None:
    source, copy = tmp_path / "other.db", tmp_path / "copy.db"
    await asyncio.to_thread(copied_under_load, source, copy, "", "-wal")
    for path in (source, copy):
        async with await open_store(path) as store:
            assert len(await store.lanes()) >= 20
        # Closed whole, its log stays beside it, with nothing in it.
        assert os.stat(f"{path}-wal").st_size == 0  # noqa: PTH116 -- a look


def opened_by_another_program(path: Path) -> None:
    """Open and close a database as any SQLite tool does: the last to close it folds its log and deletes it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("select count(*) from entries").fetchall()
    assert not Path(f"{path}-wal").exists()


async def test_a_file_whose_log_another_program_folded_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "segue.db"
    await asyncio.to_thread(copied_under_load, path, tmp_path / "copy.db", "", beats=1)
    opened_by_another_program(path)
    async with await open_store(path) as store:
        assert len(await store.lanes()) >= 20
    assert "another program folded the log" in caplog.text


async def test_a_file_that_an_older_copy_overwrote_is_refused(tmp_path: Path) -> None:
    path, copy = tmp_path / "segue.db", tmp_path / "copy.db"
    await asyncio.to_thread(copied_under_load, path, copy, "", beats=2)
    inode = path.stat().st_ino
    opened_by_another_program(path)
    path.write_bytes(copy.read_bytes())
    assert path.stat().st_ino == inode
    with pytest.raises(StoreCorrupt, match="copied while a gateway ran, without"):
        await open_store(path)


async def test_a_copy_that_another_program_opened_is_refused_in_another_place(tmp_path: Path) -> None:
    path, other = tmp_path / "segue.db", tmp_path / "other.db"
    await asyncio.to_thread(copied_under_load, path, tmp_path / "copy.db", "", beats=1)
    opened_by_another_program(path)
    for ending in ("", "-beats"):
        shutil.copyfile(f"{path}{ending}", f"{other}{ending}")
    with pytest.raises(StoreCorrupt, match="copied while a gateway ran, without"):
        await open_store(other)


async def test_an_older_copy_of_a_closed_file_begins_a_new_era(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, platform = tmp_path / "segue.db", WhatsApp()

    async def runs() -> str:
        """Run a gateway once; returns the era in which it does."""
        async with gateway_on(str(path), EchoAgent(), platform) as running:
            found = await running.store.driver.read(lambda: first(str, q.setting(name="era")))
            return found or ""

    eras = [await runs()]
    shutil.copyfile(path, tmp_path / "copy.db")
    eras.append(await runs())
    assert eras == ["", ""]
    assert not caplog.text
    shutil.copyfile(tmp_path / "copy.db", path)
    eras.append(await runs())
    assert eras[-1]
    assert "is an older copy that was put back" in caplog.text
    assert await runs() == eras[-1]


async def test_a_copy_of_a_closed_file_needs_no_log(tmp_path: Path) -> None:
    file_of_today(tmp_path / "segue.db")
    async with await open_store(tmp_path / "segue.db"):
        """It is whole."""
