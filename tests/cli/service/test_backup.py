"""`segue backup` and `segue restore`: a backup is whole while a gateway runs, and what follows it is shown."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from segue import open_store
from segue.changes import settings
from segue.changes.exchange import replicas
from segue.changes.people import browsers, codes, grants, tokens
from segue.changes.people.grants import Scope
from segue.changes.people.tokens import Token, TokenScope
from segue.cli.main import main
from segue.core.contracts.database import Transaction
from segue.core.lanes import Identity
from segue.core.windows import HOSTS
from segue.database.statements import q
from segue.testing.waits import NeverCame
from tests.forge import start
from tests.stories.square import BehindHttp, Square


def run(*words: str) -> str:
    done = CliRunner().invoke(main, [*words])
    return f"{done.exit_code}: {done.output.strip()}"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder."""
    monkeypatch.setenv("SEGUE_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


async def restored(home: Path, square: Square, *, era: bool) -> str:
    """Make a backup while the gateway runs, go on, restore it, and ask something; returns the answer."""
    kept = home / "files" / "ab" / ("ab" * 32)
    kept.parent.mkdir(parents=True)
    kept.write_text("a picture")
    async with square.open():
        await square.says("before")
        backup = await asyncio.to_thread(run, "backup", str(home / "b.tar"))
        assert backup.startswith(f"0: {home / 'b.tar'} holds everything")
        await square.says("after")
    kept.unlink()
    done = await asyncio.to_thread(run, "restore", str(home / "b.tar"))
    assert "What was there is in" in done
    assert kept.read_text() == "a picture"
    if not era:
        async with await open_store(home / "segue.db") as store:
            await store.driver.write(_no_era)
    async with square.open():
        assert await square.texts() == ["before", "You said: before"]
        return await square.says("and now?")


def _no_era() -> Transaction[None]:
    yield q.set_setting(name="era", value="")


async def test_an_older_backup_never_reuses_keys_and_its_answers_are_shown(home: Path) -> None:
    assert await restored(home, Square(BehindHttp(), str(home / "segue.db")), era=True) == "You said: and now?"


async def test_without_a_new_era_the_platform_takes_an_answer_for_an_old_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("segue.testing.waits.PATIENCE", 1.0)
    with pytest.raises(NeverCame):
        await restored(home, Square(BehindHttp(), str(home / "segue.db")), era=False)


async def test_a_restore_makes_new_keys_and_says_which_rights_it_brings_back(home: Path) -> None:
    async with await open_store(home / "segue.db") as store:
        host = await store.person(HOSTS[0])
        eve, mal = [await store.person(Identity("http", "alpha", user), user) for user in ("eve", "mal")]
        write = store.driver.write
        for key in (browsers.KEY, codes.KEY):
            await write(settings.once, key, "aa" * 32)
        for name in ("first", "second"):
            token = Token(name, eve.id, TokenScope.MCP, None, "", 1.0, 1e12, None, None)
            await write(tokens.create, token, tokens.digest(name), host.id, 1.0)
        await write(tokens.revoke, "first", host.id, 2.0)
        await write(grants.block, mal.id, host.id, 2.0)
        await write(grants.grant, "http/alpha", eve.id, Scope.DM, "test", host.id, 2.0)
    await asyncio.to_thread(run, "backup", str(home / "b.tar"))
    async with await open_store(home / "segue.db") as store:
        await store.driver.write(tokens.revoke, "second", host.id, 3.0)
        await store.driver.write(grants.unblock, mal.id, host.id, 3.0)
    done = await asyncio.to_thread(run, "restore", str(home / "b.tar"))
    assert "every browser signs in again" in done
    assert "1 token, 1 grant and 1 block are as they were in the backup" in done
    async with await open_store(home / "segue.db") as store:
        keys = {await store.driver.write(settings.once, key, "bb" * 32) for key in (browsers.KEY, codes.KEY)}
        assert len(keys - {"aa" * 32, "bb" * 32}) == 2


async def test_a_gateway_that_runs_keeps_its_database(home: Path) -> None:
    async with await open_store(home / "segue.db") as store:
        await store.driver.write(replicas.join, "r1", 60.0)
        assert await asyncio.to_thread(run, "restore") == "2: Error: store: a gateway runs on it. Stop it first."
        await store.driver.write(replicas.leave, "r1")
    assert (await asyncio.to_thread(run, "backup", str(home / "a.tar"))).startswith("0: ")
    assert "is there already" in await asyncio.to_thread(run, "backup", str(home / "a.tar"))
    (home / "torn.tar").write_text("torn")
    assert (await asyncio.to_thread(run, "restore", str(home / "torn.tar"))).startswith("1: Error: ")
    assert (home / "segue.db").exists()


def dies_at(number: int, arguments: tuple[str, ...], home: str) -> None:
    """Run `segue` in a process that ends at its so manieth change of a file's name, as by a kill."""
    left = iter(range(number))

    def hook(event: str, what: tuple[object, ...]) -> None:
        moves = event in {"os.rename", "os.remove", "os.link"} and "segue.db" in str(what[0])
        if moves and next(left, None) is None:
            os._exit(9)

    os.environ["SEGUE_HOME"] = home
    sys.addaudithook(hook)
    main(arguments, standalone_mode=True)


async def test_a_restore_that_is_killed_leaves_a_database_under_the_name(home: Path, tmp_path: Path) -> None:
    square = Square(BehindHttp(), str(home / "segue.db"))
    async with square.open():
        await square.says("before")
        assert (await asyncio.to_thread(run, "backup", str(tmp_path / "b.tar"))).startswith("0: ")
        await square.says("after")
    shutil.copytree(home, tmp_path / "kept")
    for number in range(20):
        shutil.rmtree(home)
        shutil.copytree(tmp_path / "kept", home)
        process = start(dies_at, number, ("restore", str(tmp_path / "b.tar")), str(home))
        await asyncio.to_thread(process.join)
        assert (home / "segue.db").stat().st_size > 0, f"killed at change {number}"
        if process.exitcode == 0:
            break
    assert 3 < number < 19
    for store in (home / "segue.db", *home.glob("segue.db.before-*[0-9]")):  # noqa: ASYNC240 -- a look
        async with await open_store(store) as opened:
            assert len(await opened.lanes()) == 1
