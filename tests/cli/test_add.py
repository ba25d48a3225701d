"""`segue add telegram`, against crabline."""

import asyncio
import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from segue.config import load
from segue.core.lanes import Address, Identity
from tests.servers.crabline import BOT, TOKEN, Between, telegram


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[tuple[Between, str]]:
    (tmp_path / "server").mkdir()
    async with telegram(tmp_path / "server") as (between, url):
        yield between, url


def leftovers(home: Path) -> list[Path]:
    return [*home.glob("telegram.*"), *home.glob("segue.*")]


async def add(home: Path, *words: str, typed: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "segue", "add", *words]
    env = os.environ | {"SEGUE_HOME": str(home)} | environ
    return await asyncio.to_thread(
        subprocess.run, command, input=typed, env=env, capture_output=True, text=True, timeout=60, check=False
    )


async def test_a_script_adds_a_bot(there: tuple[Between, str], tmp_path: Path) -> None:
    between, url = there
    (tmp_path / "segue.toml").write_text('# mine\n[agent]\nkind = "builtin"\n')
    words = ("telegram", "--owner", "501", "--set", "token=env:BOT_TOKEN", "--set", f"api={url}")
    done = await add(tmp_path, *words, BOT_TOKEN=TOKEN)
    assert done.returncode == 0, done.stderr
    assert f"@{BOT}" in done.stdout
    text = (tmp_path / "segue.toml").read_text()
    assert text.startswith("# mine\n")
    assert TOKEN not in text + done.stdout + done.stderr
    config = load(tmp_path / "segue.toml", {"BOT_TOKEN": TOKEN})
    assert [account.path for account in config.accounts] == [f"telegram.{BOT}"]
    assert config.gateway.hosts == (Identity("telegram", BOT, "501"),)
    assert between.read(Address("telegram", "bot", "", "501"))[0].text.startswith("Hello")
    again = await add(tmp_path, *words, BOT_TOKEN=TOKEN)
    assert (again.returncode, "it is there already" in again.stderr) == (2, True)
    assert (tmp_path / "segue.toml").read_text() == text


async def test_a_person_is_asked_and_the_token_is_kept_in_a_file_of_their_own(
    there: tuple[Between, str], tmp_path: Path
) -> None:
    _, url = there
    done = await add(tmp_path, "telegram", "--account", "home", typed=f"{TOKEN}\n\n{url}\n501\n")
    assert done.returncode == 0, done.stderr
    secret = tmp_path / "telegram.home.token"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert TOKEN not in (tmp_path / "segue.toml").read_text()
    [account] = load(tmp_path / "segue.toml", {}).accounts
    assert account.path == "telegram.home"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("telegram", "--set", "token=424242:not-the-token-at-all"), "token"),
        (("telegram", "--set", "token=env:NOT_THERE"), "NOT_THERE"),
        (("telegram", "--set", "tokn=x"), "tokn"),
        (("telegram", "--set", "token"), "no value"),
        (("telegramm",), "there is no"),
        (("http",), "can't be added"),
    ],
)
async def test_a_mistake_writes_nothing(
    there: tuple[Between, str], tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    more = ("--set", f"api={there[1]}") if "--set" in words else ()
    done = await add(tmp_path, *words, *more, "--public")
    assert done.returncode in {1, 2}
    assert says in done.stderr
    assert leftovers(tmp_path) == []


async def test_an_account_that_nobody_may_talk_to_is_not_written(there: tuple[Between, str], tmp_path: Path) -> None:
    done = await add(tmp_path, "telegram", "--set", f"token={TOKEN}", "--set", f"api={there[1]}")
    assert (done.returncode, "nobody may talk to it" in done.stderr) == (2, True)
    assert leftovers(tmp_path) == []
