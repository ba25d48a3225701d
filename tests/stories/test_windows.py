"""The same commands in the terminal and on the page: what they say is a notice, what they change is shown at once."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from segue.runtime.windows.frames import CommandsFrame, CommandsRequest
from segue.testing import ScriptedAgent
from tests.runtime.house import Guest, House, house
from tests.stories.square import recalls

Window = Callable[[House], AbstractAsyncContextManager[Guest]]
WINDOWS: list[Window] = [House.terminal, House.page]


async def shows(guest: Guest, *texts: str) -> None:
    """All that people and the agent said is this, and nothing waits."""
    while [text for text in guest.transcript if text] != list(texts) or guest.waiting:
        await guest.frame()


@pytest.mark.parametrize("window", WINDOWS, ids=["terminal", "page"])
async def test_every_command_works_in_a_window(tmp_path: Path, window: Window) -> None:
    agent = ScriptedAgent(otherwise=recalls)
    async with house(tmp_path, agent) as here, window(here) as guest:
        await guest.opened()
        await guest.says("about cats")
        await shows(guest, "about cats", "You said: about cats")
        assert await guest.told("/title Cats") == "This session is called Cats."
        assert "“Cats #2”" in await guest.told("/branch")
        await guest.says("about lions")
        cats = "about cats", "You said: about cats"
        await shows(guest, *cats, "about lions", "You said: about lions")
        assert "“Cats #2” (here)" in await guest.told("/tree")
        assert "received from" in await guest.told("/why")
        assert await guest.told("/undo") == "Took back the last exchange."
        await shows(guest, *cats)
        assert await guest.told("/undo") == "Took back the last move: fork. You are in “Cats #1”."
        agent.will("they talked of cats")
        assert (await guest.told("/compress")).startswith("A summary stands for 2 messages now.")
        await shows(guest, *cats, "they talked of cats")
        assert await guest.told("/undo 1") == "Took back the last exchange."
        await shows(guest)
        assert await guest.told("/home") == (
            f"This is the home on {'terminal' if window is House.terminal else 'web'} now. "
            "Only you can read what comes here."
        )
        assert "begun" in await guest.told("/status")
        assert await guest.told("/yes") == "Nothing was asked of you here."


@pytest.mark.parametrize("window", WINDOWS, ids=["terminal", "page"])
async def test_a_window_is_told_all_that_can_be_typed(tmp_path: Path, window: Window) -> None:
    async with house(tmp_path, ScriptedAgent()) as here, window(here) as guest:
        await guest.opened()
        await guest.sends(CommandsRequest())
        frame = await guest.shown(CommandsFrame)
    assert [command.name for command in frame.commands] == [spec.name for spec in here.gateway.commands]
    assert {"undo", "rewind", "compress", "why", "export", "yes"} <= {command.name for command in frame.commands}
