"""Two people in one thread share a conversation, and the agent can tell them apart, on real platforms."""

import pytest

from segue.core.contracts.probes import Point
from segue.core.prompt.envelopes import read
from segue.core.text.notices import WELCOME
from segue.core.transcripts import Role
from tests.full import full
from tests.platforms.conftest import Worlds
from tests.platforms.corners import Corner, FeishuCorner, counts, shows
from tests.platforms.world import Way, World
from tests.servers.feishu import PEOPLE as FEISHU_PEOPLE
from tests.servers.slack import PEOPLE

DEATHS = [
    full("telegram", None, Way.POLLING),
    full("telegram", Point.TURN_STARTED, Way.POLLING),
    ("telegram", Point.SEND_CALLED, Way.WEBHOOK),
    ("matrix", None, Way.POLLING),
    full("matrix", Point.SEND_CALLED, Way.POLLING),
    full("matrix", Point.TURN_STARTED, Way.POSTGRES),
    ("slack", Point.SEND_CALLED, Way.POLLING),
    ("feishu", Point.SEND_CALLED, Way.WEBHOOK),
    full("discord", Point.SEND_CALLED, Way.POLLING),
]


async def thread_in(town: World, platform: str) -> tuple[Corner, str, dict[str, str]]:
    """A thread that somebody has begun in a group of two people and the agent, and who they are there."""
    if platform == "telegram":
        return await town.forum(), "77", {"Ann": "501", "Ben": "502"}
    if platform == "slack":
        channel = town.channel()
        return channel, await channel.says("let's plan"), PEOPLE
    if town.feishu is not None:
        group = FeishuCorner(town.feishu.between, "oc_group")
        return group, await group.says("let's plan"), FEISHU_PEOPLE
    if town.discord is not None:
        club, chat = town.discord.town, int(town.discord.chat)
        thread = club.backend.create_thread(chat, "Plans", club.people["Ann"].id)
        return town.discord, str(thread.id), {name: str(user.id) for name, user in club.people.items()}
    room = await town.room("Ben")
    await shows(room, [WELCOME])
    root = await room.says("let's plan")
    await shows(room, [WELCOME, "You said: let's plan"])
    return room, root, {name: user.id for name, user in town.people.items()}


def heard(town: World) -> list[tuple[str, str]]:
    """What people said in the conversation of the last turn, and who; nobody while one of them was alone."""
    said = [words for role, words in town.wire[-1]["said"] if role == Role.PERSON]
    envelopes = [read(words) if words.startswith('{"author"') else None for words in said]
    return [(e.id, e.text) if e else ("", words) for e, words in zip(envelopes, said, strict=True)]


@pytest.mark.parametrize(("platform", "death", "way"), DEATHS)
async def test_two_people_share_a_thread(worlds: Worlds, platform: str, death: Point | None, way: Way) -> None:
    async with worlds(way, platform) as town:
        there, thread, ids = await thread_in(town, platform)
        await there.says("I want cake", thread, "Ann")
        await shows(there, ["You said: I want cake"], thread)
        if death is not None:
            town.dies_at(death)
        await there.says("I want tea", thread, "Ben")
        if death is not None:
            await town.rises()
        await shows(there, ["You said: I want cake", "You said: I want tea"], thread)
        await town.kill()
        # While nobody is there; different people's messages are never merged.
        await there.says("and milk", thread, "Ann")
        await there.says("and sugar", thread, "Ben")
        await town.start()
        said = ["I want cake", "I want tea", "and milk", "and sugar"]
        await shows(there, [f"You said: {text}" for text in said], thread)
        who = ["", ids["Ben"], ids["Ann"], ids["Ben"]]
        assert heard(town) == list(zip(who, said, strict=True))


@pytest.mark.parametrize("platform", ["telegram", full("signal")])
async def test_a_flat_chat_holds_several_conversations(worlds: Worlds, platform: str) -> None:
    async with worlds(Way.POLLING, platform) as town:
        here = town.home_on(platform)
        said = ["You said: about tea"]
        await here.says("about tea")
        await shows(here, said)
        town.dies_at(Point.TURN_STARTED)
        await here.says("/sessions new about milk")
        await town.rises()
        said.append("You said: about milk")
        await shows(here, said)
        assert town.last == ["about milk"]
        await here.says("/sessions")
        listed = (await counts(here, 3))[2]
        assert [line.partition(" ")[0] for line in listed.splitlines() if line[:1].isdecimal()] == ["1.", "2."]
        assert len([line for line in listed.splitlines() if "tea" in line]) == 1, listed
        await town.kill()
        tea = next(line.partition(".")[0] for line in listed.splitlines() if "tea" in line)
        await here.says(f"/sessions {tea}")
        await here.says("green?")
        await town.start()
        assert (await counts(here, 5))[4:] == ["You said: green?"]
        assert town.last == ["about tea", "You said: about tea", "green?"]
