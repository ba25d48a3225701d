"""An agent starts a session with a thread of its own, on real platforms, whatever becomes of the gateway meanwhile."""

import pytest

from segue.core.contracts.probes import Point
from tests.full import full
from tests.platforms.conftest import Worlds
from tests.platforms.corners import shows, thread_of
from tests.platforms.world import Way

DEATHS = [
    full("telegram", None, Way.POLLING),
    full("telegram", Point.SEND_CALLED, Way.POLLING),
    full("telegram", Point.TURN_JOURNALED, Way.WEBHOOK),
    ("telegram", Point.TURN_ANSWERED, Way.POSTGRES),
    full("matrix", None, Way.POLLING),
    ("matrix", Point.SEND_CALLED, Way.POLLING),
    full("matrix", Point.TURN_JOURNALED, Way.POLLING),
    full("matrix", Point.TURN_ANSWERED, Way.POLLING),
    ("slack", Point.SEND_CALLED, Way.POLLING),
    full("feishu", Point.SEND_CALLED, Way.POLLING),
    ("discord", Point.TURN_JOURNALED, Way.POLLING),
]


@pytest.mark.parametrize(("platform", "death", "way"), DEATHS)
async def test_a_child_has_a_thread_of_its_own(worlds: Worlds, platform: str, death: Point | None, way: Way) -> None:
    async with worlds(way, platform) as town:
        there = town.home_on(platform)
        if death is not None:
            town.dies_at(death)
        await there.says("start cake")
        if death is not None:
            await town.rises()
        thread = await thread_of(there)
        await shows(there, ["You said: cake"], thread)
        await town.kill()
        await there.says("with cream?", thread)
        await town.start()
        await shows(there, ["You said: cake", "You said: with cream?"], thread)
        assert [words for _, words in town.wire[-1]["said"]][-3:] == ["cake", "You said: cake", "with cream?"]
        await there.says("and you?")
        # The head of a thread stands before or after what grows there into the answer; Telegram's topics have none.
        heads = [] if platform == "telegram" else ["cake"]

        async def answered() -> bool:
            *before, last = [*await there.texts(""), ""][: len(heads) + 2]
            return sorted(before) == ["Started: cake", *heads] and last == "You said: and you?"

        async def found() -> str:
            return f"there are {await there.texts('')!r}"

        await there.until(answered, found)
        assert town.last == ["start cake", "Started: cake", "and you?"]
        assert await there.threads() == [thread]
