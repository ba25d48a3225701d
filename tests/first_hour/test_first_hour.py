"""The first hour: what the README says, from an empty home to a model's answer, to a phone and back, and to a backup.

Whatever is typed is typed in a real terminal, and what is on its screen is what counts.
"""

import signal
from pathlib import Path

import pytest

from tests.cli.screens import Terminal, terminal
from tests.platforms.corners import TelegramCorner, counts, shows, thread_of
from tests.served import Served
from tests.servers.aimock import aimock, says
from tests.servers.crabline import TOKEN, telegram

HELLO = "Hello! I am a model."
TEA = "Green tea, eighty degrees."
MOVED = "Here I am again."
LATER = "Until tomorrow, then."

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of forkpty.*:DeprecationWarning")


async def segue(home: Path, *arguments: str, code: int = 0) -> str:
    """The screen of a command that has ended with this code."""
    here = Terminal(home, *arguments, HOME=str(home))
    try:
        assert await here.leaves() == code, here.text
        return here.text
    finally:
        await here.end()


async def test_from_an_empty_home_to_a_phone_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    await _tries(home)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    monkeypatch.setenv("BOT_TOKEN", TOKEN)
    fixtures = [says(TEA, to="tea"), says(MOVED, to="moved"), says(LATER, to="good night"), says(HELLO)]
    async with aimock(tmp_path, fixtures) as model, telegram(tmp_path) as (between, api):
        assert "openai" in await segue(home, "init")
        # Only its address differs from what `segue init` wrote.
        file = home / "segue.toml"
        file.write_text(f'{file.read_text().rstrip()}\nbase_url = "{model.url}/v1"\n')
        asked = ("--owner", "501", "--set", "token=env:BOT_TOKEN", "--set", f"api={api}")
        assert "Wrote [telegram." in await segue(home, "add", "telegram", *asked)
        gateway = Served(home)
        await gateway.start()
        try:
            assert "it runs" in await segue(home, "status")
            await _goes_and_comes_back(home, TelegramCorner(between, "501"))
            assert "Green tea" in await segue(home, "sessions", "search", "degrees")
            await _is_restored(home, gateway)
        finally:
            await gateway.end()


async def _tries(home: Path) -> None:
    """As `make run` begins: no account, no key, the built-in agent."""
    async with terminal(home, "talk", "--page") as here:
        await here.shows("Open the page with this link, which works once:")
        await here.shows("Segue keeps this conversation")
        here.types("remember the blue cup\r")
        await here.shows("I'll remember that: the blue cup")
        here.types("/help\r")
        await here.shows("Take back and try again:")
        here.types("/quit\r")
        assert await here.leaves() == 0
    async with terminal(home) as here:
        await here.shows("I'll remember that: the blue cup")
        here.types("/quit\r")
        assert await here.leaves() == 0


async def _goes_and_comes_back(home: Path, phone: TelegramCorner) -> None:
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
    await shows(phone, [MOVED, TEA], thread)
    async with terminal(home, "--new") as here:
        await phone.says("/handoff terminal", thread)
        await here.shows("and tea with milk?")
        await here.until(lambda screen: screen.count(MOVED) == 2)
        here.types("/search milk\r")
        await here.shows("1. “Tea”")
        here.types("/quit\r")
        assert await here.leaves() == 0


async def _is_restored(home: Path, gateway: Served) -> None:
    """What was said after a backup is gone once it is brought back, and the conversation goes on from there."""
    assert "holds everything that was said until now" in await segue(home, "backup", "saved")
    async with terminal(home) as here:
        await here.shows("and tea with milk?")
        here.types("good night\r")
        await here.shows(LATER)
        here.types("/quit\r")
        assert await here.leaves() == 0
    assert "a gateway runs on it. Stop it first." in await segue(home, "restore", "saved", code=2)
    assert await gateway.end(signal.SIGTERM) == 0
    assert "Restored." in await segue(home, "restore", "saved")
    await gateway.start()
    async with terminal(home) as here:
        await here.shows("and tea with milk?")
        assert "good night" not in here.text
        told = here.text.count(TEA)
        here.types("is there tea?\r")
        await here.until(lambda screen: screen.count(TEA) > told)
        here.types("/quit\r")
        assert await here.leaves() == 0
