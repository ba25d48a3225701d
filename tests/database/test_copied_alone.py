"""A copy of the SQLite file alone, made while a gateway runs, is noticed; a whole copy and a closed one are fine."""

import asyncio
import os
import shutil
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from click.testing import CliRunner

from segue import open_store
from segue.cli.main import main
from segue.errors import StoreCorrupt
from segue.testing.agents import EchoAgent
from segue.testing.personas import WhatsApp
from tests.forge import kill, start
from tests.in_process import gateway_on
from tests.runtime.test_poison import arrival
from tests.today import file_of_today


async def _run(where: str, under_load: Connection) -> None:
    platform = WhatsApp()
    async with gateway_on(where, EchoAgent(), platform, poll=1.0) as running:
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


def copied_under_load(source: Path, to: Path, *endings: str) -> None:
    """Copy a database's files while a gateway of its own process writes to it, then kill that."""
    here, there = Pipe()
    gateway = start(writes_on, str(source), there)
    there.close()
    try:
        here.recv()
        for ending in endings:
            shutil.copyfile(f"{source}{ending}", f"{to}{ending}")
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


async def test_a_copy_of_a_closed_file_needs_no_log(tmp_path: Path) -> None:
    file_of_today(tmp_path / "segue.db")
    async with await open_store(tmp_path / "segue.db"):
        """It is whole."""
