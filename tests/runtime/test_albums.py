"""Albums: pictures that a platform sends one by one are one message to the agent, on both databases."""

import time

from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import Arrival, File, Speaker, Text
from segue.core.settings import AccountSettings
from segue.runtime.gateway import Gateway
from segue.testing.agents import Pause, ScriptedAgent
from segue.testing.personas import Telegram
from tests.in_process import gateway_on


def picture(n: int, platform: Telegram, words: str = "", album: str = "a1") -> Arrival:
    address = Address(platform.name, platform.account, "", "501")
    file = File(f"{n}.jpg", "image/jpeg", f"kept/{n}", 3)
    parts = ((Text(words),) if words else ()) + ((file,) if album else ())
    speaker = Speaker(Identity(platform.name, platform.account, "501"), "Ann")
    return Arrival(Place(address, Kind.DM), f"m{n}", speaker, parts, time.time(), album=album)


async def test_its_pictures_are_one_turn_also_behind_one_that_runs(database: str) -> None:
    platform, pause = Telegram(), Pause()
    agent = ScriptedAgent("three", [pause, "wait"], "two more")
    async with gateway_on(database, agent, platform, account=AccountSettings(public=True)) as gateway:
        await say(gateway, *(picture(n, platform, "look" if n == 1 else "") for n in (1, 2, 3)))
        first = await agent.asked(1)
        await agent.idle()
        await say(gateway, picture(4, platform, "and?", album=""))
        await pause.reached()
        await say(gateway, picture(5, platform), picture(6, platform))
        pause.over()
        last = await agent.asked(3)
        await agent.idle()
    files = [
        [part.name for draft in work.asked for part in draft.parts if isinstance(part, File)] for work in agent.works
    ]
    assert files == [["1.jpg", "2.jpg", "3.jpg"], [], ["5.jpg", "6.jpg"]]
    assert [draft.text for draft in first.asked] == ["look", "", ""]
    assert len(last.asked) == 2


async def say(gateway: Gateway, *arrivals: Arrival) -> None:
    for arrival in arrivals:
        await gateway.accept(arrival)
