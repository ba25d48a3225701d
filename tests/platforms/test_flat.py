"""Chats without threads: a conversation moves there and back, and a child lasts, whatever becomes of the gateway."""

import pytest

from segue.core.contracts.probes import Point
from segue.plugins import platforms
from segue.runtime.outbox import MAYBE
from tests.full import full
from tests.platforms.conftest import Worlds
from tests.platforms.corners import shows
from tests.platforms.test_moving import ALL, HERE, HOT, PLATFORMS, TEA
from tests.platforms.windows import terminal
from tests.platforms.world import Way

DEATHS = [
    full("whatsapp", None, 0, Way.POLLING),
    ("whatsapp", Point.HANDOFF_BOUND, 1, Way.POLLING),
    full("whatsapp", Point.SEND_CALLED, 1, Way.POLLING),
    full("whatsapp", Point.SEND_RECORDED, 1, Way.POSTGRES),
    full("signal", None, 0, Way.POLLING),
    full("signal", Point.HANDOFF_CLAIMED, 1, Way.POLLING),
    full("signal", Point.SEND_CALLED, 1, Way.POLLING),
    ("signal", Point.TURN_STARTED, 1, Way.POSTGRES),
]
"""Where to, and where the gateway dies on the way; the terminal is told without a send."""
STARTED = ["Started: cake", "You said: cake"]


def test_to_every_platform_something_is_handed_off() -> None:
    assert {*PLATFORMS, "whatsapp", "signal"} == set(platforms()) - {"http"}


@pytest.mark.parametrize(("platform", "point", "times", "way"), DEATHS)
async def test_from_a_terminal_and_back(
    worlds: Worlds, platform: str, point: Point | None, times: int, way: Way
) -> None:
    async with worlds(way, platform) as town:
        there = town.home_on(platform)
        async with terminal(town.home) as here:
            await here.says("about tea")
            await here.shows(*TEA)
            await here.says("/title Tea")
            await here.tells("called Tea")
            if point is not None:
                town.dies_at(point, times)
            await here.says(f"/handoff {platform}")
            if point is not None:
                await town.rises()
        await shows(there, [HERE])
        await there.says("with milk?")
        await shows(there, [HERE, "You said: with milk?"])
        assert town.last == [*TEA, HERE, "with milk?"]
        async with terminal(town.home) as here:
            await here.shows(*ALL)
            await here.says("still hot?")
            await here.shows(*ALL, *HOT)
        assert town.last == [*ALL, "still hot?"]
        assert await there.texts() == [HERE, "You said: with milk?"]


@pytest.mark.parametrize(
    ("platform", "death"),
    [
        full("whatsapp", None),
        ("whatsapp", Point.TURN_JOURNALED),
        ("signal", None),
        full("signal", Point.TURN_JOURNALED),
    ],
)
async def test_a_child_without_a_thread_speaks_in_the_chat(worlds: Worlds, platform: str, death: Point | None) -> None:
    async with worlds(Way.POLLING, platform) as town:
        there = town.home_on(platform)
        if death is not None:
            town.dies_at(death)
        await there.says("start cake")
        if death is not None:
            await town.rises()

        async def both() -> bool:
            return len(await there.texts()) == 2

        async def missing() -> str:
            return f"there are {await there.texts()!r}"

        await there.until(both, missing)
        told = await there.texts()
        assert any(text.endswith("You said: cake") for text in told), told
        await there.says("and you?")
        await shows(there, [*told, "You said: and you?"])
        assert town.last == ["start cake", "Started: cake", "and you?"]


async def test_people_in_a_group_have_a_conversation_each(worlds: Worlds) -> None:
    async with worlds(Way.POLLING, "signal") as town:
        assert town.signal is not None
        club = town.signal.club
        await club.says("I want cake")
        await shows(club, ["You said: I want cake"])
        town.dies_at(Point.TURN_STARTED)
        await club.says("I want tea", who="Ben")
        await town.rises()
        said = ["You said: I want cake", "You said: I want tea"]
        await shows(club, said)
        assert town.last == ["I want tea"]
        await town.kill()
        await club.says("and cream")
        await town.start()
        await shows(club, [*said, "You said: and cream"])
        assert town.last == ["I want cake", said[0], "and cream"]


async def test_a_message_of_which_nothing_is_told_after_a_crash_comes_again_and_says_so(worlds: Worlds) -> None:
    async with worlds(Way.POLLING, "whatsapp") as town:
        there = town.whatsapp
        assert there is not None
        there.between.status = lambda _: None
        town.dies_at(Point.SEND_CALLED)
        await there.says("hello")
        await town.rises()
        there.between.status = lambda _: {"status": "sent"}
        await shows(there, ["You said: hello", f"{MAYBE}You said: hello"])
        await there.says("and now?")
        await shows(there, ["You said: hello", f"{MAYBE}You said: hello", "You said: and now?"])


async def test_a_handoff_that_the_platform_refuses_fails_in_its_own_words(worlds: Worlds) -> None:
    async with worlds(Way.POLLING, "whatsapp") as town:
        there = town.whatsapp
        assert there is not None
        fault = {"code": 131047, "title": "Re-engagement message"}
        there.between.status = lambda _: {"status": "failed", "errors": [fault]}
        async with terminal(town.home) as here:
            await here.says("about tea")
            await here.shows(*TEA)
            await here.says("/handoff whatsapp")
            await here.tells("for 24 hours after somebody last wrote")
            await here.says("still hot?")
            await here.shows(*TEA, *HOT)
