"""A platform is out of reach, the gateway stands still or is off: what is said meanwhile is answered once, in order."""

import asyncio

import pytest

from segue.plugins import platforms
from tests.platforms.conftest import Worlds
from tests.platforms.corners import DiscordCorner, FeishuCorner, SignalCorner, SlackCorner, WhatsAppCorner
from tests.platforms.world import Way

Shaky = SlackCorner | DiscordCorner | FeishuCorner | SignalCorner | WhatsAppCorner
ELSEWHERE = {"http", "matrix", "telegram"}
"""Cut off in drills: `kills` and `everywhere`."""


async def answered(here: Shaky, *words: str) -> None:
    """Wait until the agent has said again just these words; what one person has waiting may be one turn."""

    async def told() -> list[str]:
        return [word for text in await here.texts() for word in text.removeprefix("You said: ").split(" + ")]

    async def are_there() -> bool:
        return await told() == list(words)

    async def missing() -> str:
        return f"{words} never; there are {await told()}"

    await here.until(are_there, missing)


@pytest.mark.parametrize("platform", sorted(set(platforms()) - ELSEWHERE))
async def test_what_is_said_in_an_outage_is_answered_once_and_in_order(worlds: Worlds, platform: str) -> None:
    async with worlds(Way.POLLING, platform) as town:
        here = town.home_on(platform)
        assert isinstance(here, Shaky)
        await here.says("one")
        await answered(here, "one")
        await here.goes()
        await here.says("two")
        await here.says("three")
        here.comes()
        await answered(here, "one", "two", "three")
        with town.frozen():
            await here.says("four")
            # Longer than a lease lasts.
            await asyncio.sleep(1.5)
        await answered(here, "one", "two", "three", "four")
        await town.kill()
        await here.says("five")
        await town.start()
        await answered(here, "one", "two", "three", "four", "five")
