"""A copy of the SQLite file alone, made while a gateway runs, is noticed; a whole copy and a closed one are fine."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from segue import open_store
from segue.cli.main import main
from segue.errors import StoreCorrupt

RUNNING = """
import asyncio, sys
from pathlib import Path
from segue import open_store
from segue.core.settings import AccountSettings, GatewaySettings
from segue.runtime.gateway import Gateway
from segue.testing.agents import EchoAgent
from segue.testing.personas import WhatsApp
from tests.runtime.test_poison import arrival

async def main(where):
    platform = WhatsApp()
    settings = GatewaySettings(accounts={(platform.name, platform.account): AccountSettings(public=True)})
    async with await open_store(where) as store, Gateway(store, EchoAgent(), [platform.adapter()], settings) as running:
        await running._soundness.once()
        for n in range(1_000_000):
            await running.accept(arrival(platform, n, f"message {n}"))
            if n == 20:
                print("under load", flush=True)

asyncio.run(main(Path(sys.argv[1])))
"""


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
    run, here = [sys.executable, "-c", RUNNING, str(source)], Path(__file__).parents[2]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True, cwd=here) as gateway:
        try:
            assert gateway.stdout is not None
            assert gateway.stdout.readline() == "under load\n"
            for ending in endings:
                shutil.copyfile(f"{source}{ending}", f"{to}{ending}")
        finally:
            gateway.kill()


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


async def test_a_copy_of_a_closed_file_needs_no_log(today_file: Path, tmp_path: Path) -> None:
    shutil.copyfile(today_file, tmp_path / "segue.db")
    async with await open_store(tmp_path / "segue.db"):
        """It is whole."""
