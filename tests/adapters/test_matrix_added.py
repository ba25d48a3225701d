"""`segue add matrix` against a real homeserver: from an account with a password to an answer."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from segue.adapters.matrix import MatrixAccount
from segue.cli.add import command
from segue.config import load
from segue.errors import Disconnected, Invalid
from tests.adapters.matrix import MatrixHarness
from tests.servers.homeserver import Synapse


@pytest.fixture
async def town(synapse: Synapse, tmp_path: Path) -> AsyncIterator[MatrixHarness]:
    town = await MatrixHarness.make(synapse, tmp_path)
    yield town
    await town.close()


async def test_a_bot_is_added_by_its_password_and_says_hello(
    town: MatrixHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEGUE_HOME", str(tmp_path))
    monkeypatch.setenv("PASSWORD", "p")
    ann = town.people["Ann"]
    said = [f"homeserver={town.server.url}", f"user={town.bot.id}", "password=env:PASSWORD", "inviters=@cay:e.example"]
    arguments = ["matrix", "--account", "main", "--owner", ann.id, *(part for one in said for part in ("--set", one))]
    done = await asyncio.to_thread(CliRunner().invoke, command, arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    assert f"The bot is {town.bot.id}, and its homeserver answers." in done.output
    config = load(tmp_path / "segue.toml", {})
    [account] = config.accounts
    assert isinstance(account.keys, MatrixAccount)
    assert (account.keys.homeserver, account.keys.user) == (town.server.url, town.bot.id)
    assert account.keys.inviters == (ann.id, "@cay:e.example"), "whoever added it couldn't bring it into a room"
    assert "PASSWORD" not in (tmp_path / "segue.toml").read_text()
    [room] = (await ann.call("GET", "/sync", query={"timeout": "0"}))["rooms"]["invite"]
    await ann.join(room)
    await ann.reads(room, town.bot.id, "Hello. Write to me here, or type /help.")
    marked = await town.bot.call("GET", f"/user/{town.bot.id}/account_data/m.direct")
    assert marked == {ann.id: [room]}


async def test_what_is_wrong_is_told_before_anything_is_written(town: MatrixHarness) -> None:
    right = {"homeserver": town.server.url, "user": town.bot.id}
    with pytest.raises(Invalid, match="neither a password nor a token"):
        await MatrixAccount.added(right)
    with pytest.raises(Invalid, match="M_FORBIDDEN"):
        await MatrixAccount.added({**right, "password": "wrong"})
    with pytest.raises(Invalid, match=r"the token is @\S+'s, not @"):
        await MatrixAccount.added({**right, "token": town.people["Ann"].token})
    with pytest.raises(Invalid, match="'cay' is not a user's id"):
        await MatrixAccount.added({**right, "password": "p", "inviters": "@ben:e.example, cay"})
    with pytest.raises(Disconnected, match="be reached"):
        await MatrixAccount.added({**right, "homeserver": "http://127.0.0.1:1", "password": "p"})
