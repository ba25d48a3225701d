"""A conversation moves between a terminal and five platforms, whatever becomes of the gateway on its way."""

import pytest

from segue.core.contracts.probes import Point
from tests.cli import screens
from tests.full import full
from tests.platforms.conftest import Worlds
from tests.platforms.corners import Corner, counts, shows, thread_of
from tests.platforms.windows import terminal
from tests.platforms.world import Way, World

TEA = ["about tea", "You said: about tea"]
HERE = "Here I am. I remember: about tea | You said: about tea"
MILK = ["with milk?", "You said: with milk?"]
HOT = ["still hot?", "You said: still hot?"]
ALL = [*TEA, HERE, *MILK]
THERE = "This conversation goes on in {}. /resume brings it back here."
PLATFORMS = {
    "telegram": "telegram.bot",
    "matrix": "matrix.main",
    "slack": "slack.main",
    "discord": "discord.bot",
    "feishu": "feishu.main",
}
READ_BY_ALL = {"discord"}
"""Platforms whose home is a channel: no window opens by itself on what everybody there reads."""
DEATHS = [
    full("telegram", Point.TURN_FINISHED, 1, Way.POLLING),
    ("telegram", Point.SEND_PLACED, 1, Way.POLLING),
    full("telegram", Point.SEND_CALLED, 2, Way.WEBHOOK),
    ("telegram", Point.HANDOFF_OPENED, 1, Way.POSTGRES),
    full("matrix", Point.HANDOFF_OPENED, 1, Way.POLLING),
    ("matrix", Point.TURN_STARTED, 1, Way.POLLING),
    full("matrix", Point.SEND_CALLED, 2, Way.POSTGRES),
    full("slack", Point.HANDOFF_OPENED, 1, Way.POLLING),
    ("slack", Point.SEND_CALLED, 2, Way.WEBHOOK),
    ("feishu", Point.HANDOFF_OPENED, 1, Way.POLLING),
    full("feishu", Point.SEND_CALLED, 2, Way.WEBHOOK),
    full("discord", Point.HANDOFF_OPENED, 1, Way.POLLING),
    ("discord", Point.SEND_CALLED, 2, Way.POLLING),
]
"""Where to, and where the gateway dies on the way; what is sent first is the answer to /handoff.

In all, when the thread is open and when something was sent it dies on every platform, at the other points on one.
"""


async def goes_on(town: World, there: Corner) -> str:
    """The agent speaks first in a thread, and the first reply there is in the conversation that moved; the thread."""
    thread = await thread_of(there)
    await shows(there, [HERE], thread)
    await there.says("with milk?", thread)
    await shows(there, [HERE, "You said: with milk?"], thread)
    assert town.last == [*TEA, HERE, "with milk?"]
    return thread


@pytest.mark.parametrize("platform", ["telegram", "discord", *(full(name) for name in ("matrix", "slack", "feishu"))])
async def test_from_a_terminal_and_back(worlds: Worlds, platform: str) -> None:
    async with worlds(Way.POLLING, platform) as town:
        there = town.home_on(platform)
        async with screens.terminal(town.home) as here:
            here.types("about tea\r")
            await here.shows("You said: about tea")
            here.types("/title Tea\r")
            await here.shows("This session is called Tea.")
            here.types(f"/handoff {platform}\r")
            assert await here.leaves() == 0
            assert f"This conversation goes on in {PLATFORMS[platform]}." in here.text
        thread = await goes_on(town, there)
        async with screens.terminal(town.home) as here:
            if platform in READ_BY_ALL:
                here.types("/resume Tea\r")
            await here.shows("You said: with milk?")
            here.types("still hot?\r")
            await here.shows("You said: still hot?")
        assert town.last == [*ALL, "still hot?"]
        assert await there.texts(thread) == [HERE, "You said: with milk?"]


@pytest.mark.parametrize(("platform", "point", "times", "way"), DEATHS)
async def test_from_a_terminal_and_back_though_the_gateway_dies(
    worlds: Worlds, platform: str, point: Point, times: int, way: Way
) -> None:
    async with worlds(way, platform) as town:
        there = town.home_on(platform)
        async with terminal(town.home) as here:
            await here.says("about tea")
            await here.shows(*TEA)
            await here.says("/title Tea")
            await here.tells("called Tea")
            town.dies_at(point, times)
            await here.says(f"/handoff {platform}")
            await town.rises()
        thread = await goes_on(town, there)
        async with terminal(town.home) as here:
            await here.shows(*([] if platform in READ_BY_ALL else ALL))
            await here.says("/new")
            await here.shows()
            await here.says("/resume Tea")
            await here.shows(*ALL)
            await here.says("still hot?")
            await here.shows(*ALL, *HOT)
        assert town.last == [*ALL, "still hot?"]
        assert await there.texts(thread) == [HERE, "You said: with milk?"]
        assert await there.threads() == [thread]


@pytest.mark.parametrize(
    ("point", "times", "way"),
    [
        full(None, 0, Way.POLLING),
        (None, 0, Way.WEBHOOK),
        (Point.HANDOFF_CLAIMED, 1, Way.POSTGRES),
        full(Point.TURN_ANSWERED, 1, Way.POLLING),
        (Point.SEND_RECORDED, 2, Way.POLLING),
    ],
)
async def test_from_telegram_to_matrix_and_back(worlds: Worlds, point: Point | None, times: int, way: Way) -> None:
    async with worlds(way, "") as town:
        here, there = town.telegram, town.matrix
        said = ["You said: about tea"]
        await here.says("about tea")
        await shows(here, said)
        await here.says("/title Tea")
        said.append("This session is called Tea.")
        await shows(here, said)
        if point is not None:
            town.dies_at(point, times)
        await here.says("/handoff matrix")
        if point is not None:
            await town.rises()
        said += ["Handing “Tea” off to matrix.main: only you can read there. /handoff cancel stops it."]
        said += [THERE.format("matrix.main")]
        thread = await goes_on(town, there)
        await shows(here, said)
        await here.says("/resume Tea")
        said.append("Back in “Tea”.")
        await shows(here, said)
        await here.says("still hot?")
        await shows(here, [*said, "You said: still hot?"])
        assert town.last == [*ALL, "still hot?"]
        assert await there.texts(thread) == [HERE, "You said: with milk?"]
        assert await there.threads() == [thread]


@pytest.mark.parametrize(("point", "times"), [full(None, 0), (Point.SEND_CALLED, 3)])
async def test_from_matrix_into_a_forum_where_others_join_in(worlds: Worlds, point: Point | None, times: int) -> None:
    async with worlds(Way.POLLING) as town:
        here, there = town.matrix, await town.forum()
        await there.says("hello", who="Ben")
        await shows(there, ["You said: hello"])
        await here.says("about tea")
        await shows(here, ["You said: about tea"])
        if point is not None:
            town.dies_at(point, times)
        await here.says(f"/handoff telegram:{there.chat}")
        asked = (await counts(here, 2))[1]
        assert "everyone in Forum can read there" in asked
        await here.says("/yes")
        if point is not None:
            await town.rises()
        topic = await thread_of(there)
        await shows(there, [HERE], topic)
        await there.says("with milk?", topic, "Ben")
        await shows(there, [HERE, "You said: with milk?"], topic)
        assert town.last == [*TEA, HERE, "with milk?"]
        assert '"id":"502"' in town.wire[-1]["said"][-1][1]
        handing, gone = (await counts(here, 4))[2:]
        assert handing.startswith(f"Handing an untitled session off to telegram.bot:{there.chat}: everyone in Forum")
        assert gone == THERE.format("telegram.bot")
