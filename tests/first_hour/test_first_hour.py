"""The first hour: what the README says, from an empty home to a model's answer, to Telegram and back."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.cli.screens import terminal
from tests.platforms.corners import TelegramCorner, counts, shows, thread_of
from tests.served import PATIENCE, Served
from tests.servers.aimock import aimock, says
from tests.servers.crabline import TOKEN, telegram

HELLO = "Hello! I am a model."
TEA = "Green tea, eighty degrees."
MOVED = "Here I am, on your phone."

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of forkpty.*:DeprecationWarning")


async def segue(home: Path, *arguments: str) -> str:
    """What a command prints; it must have worked."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "segue", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"SEGUE_HOME": str(home), "HOME": str(home)},
        cwd=home,
    )
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate()
    assert process.returncode == 0, (arguments, out.decode(), err.decode())
    return out.decode()


async def test_from_an_empty_home_to_a_phone_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("BOT_TOKEN", TOKEN)
    fixtures = [says(TEA, to="tea"), says(MOVED, to="moved"), says(HELLO)]
    async with aimock(tmp_path, fixtures) as model, telegram(tmp_path) as (between, api):
        assert "openai" in await segue(home, "init")
        # Only its address differs from what `segue init` wrote.
        file = home / "segue.toml"
        file.write_text(f'{file.read_text().rstrip()}\nbase_url = "{model.url}/v1"\n')
        added = await segue(
            home, "add", "telegram", "--owner", "501", "--set", "token=env:BOT_TOKEN", "--set", f"api={api}"
        )
        assert "Wrote [telegram." in added
        gateway = Served(home)
        await gateway.start()
        try:
            await _talks(home, TelegramCorner(between, "501"))
        finally:
            await gateway.end()
        assert "Green tea" in await segue(home, "sessions", "search", "degrees")


async def _talks(home: Path, phone: TelegramCorner) -> None:
    assert "it runs" in await segue(home, "status")
    await phone.says("hello")
    await counts(phone, 2)
    await phone.says("/home")
    await counts(phone, 3)
    async with terminal(home, "--new") as here:
        here.types("hello\r")
        await here.shows(HELLO)
        here.types("how hot is tea?\r")
        await here.shows(TEA)
        here.types("/title Tea\r")
        await here.shows("This session is called Tea.")
        here.types("/undo\r")
        await here.shows("Took back the last exchange.")
        here.types("/redo\r")
        await here.shows("What was undone stands again.")
        here.types("/handoff telegram\r")
        assert await here.leaves() == 0
        assert "This conversation goes on in" in here.text
    thread = await thread_of(phone)
    await phone.says("and tea with milk?", thread)
    [opening, *_] = await counts(phone, 2, thread)
    await shows(phone, [opening, TEA], thread)
    async with terminal(home) as here:
        await here.shows("and tea with milk?")
        here.types("/search milk\r")
        await here.shows("1. “Tea”")
        here.types("/quit\r")
        assert await here.leaves() == 0
