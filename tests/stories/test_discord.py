"""Conversations on Discord, end to end: a real gateway, discord.py, and simcord's Discord behind real sockets."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from segue.adapters.discord import Discord
from segue.agents.given import as_agent
from segue.core.contracts.agents import Agent, Work
from segue.core.contracts.probes import Point, Probe
from segue.core.lanes import Identity
from segue.core.messages import Citation, File, Text
from segue.core.settings import AccountSettings, Mentions, Streams
from segue.core.values import Secret
from segue.database.transactions import unheeded
from segue.runtime.gateway import Gateway
from segue.testing import EchoAgent, Pause, ScriptedAgent, Shelf
from tests.adapters.discord import shown
from tests.in_process import gateway_on
from tests.servers.discord import TOKEN, LocalDiscord, local_discord
from tests.stories.files import KilledAt, plans

EVERYBODY = AccountSettings(public=True)


@pytest.fixture
async def town() -> AsyncIterator[LocalDiscord]:
    async with local_discord() as town:
        yield town


@asynccontextmanager
async def running(
    path: Path,
    town: LocalDiscord,
    agent: Agent,
    account: AccountSettings = EVERYBODY,
    probe: Probe = unheeded,
    files: Shelf | None = None,
) -> AsyncIterator[Gateway]:
    """A gateway on Discord alone, connected; Ann is its host."""
    shelf = files or Shelf()
    adapter = Discord("bot", Secret(TOKEN), shelf, town.url)
    hosts = (Identity("discord", "bot", str(town.people["Ann"].id)),)
    more: Any = {"account": account, "hosts": hosts, "probe": probe, "files": shelf, "grace": 0.1}
    connected = town.identified + town.resumed
    try:
        async with gateway_on(path, agent, adapter, **more) as gateway:
            await until(town, lambda: town.identified + town.resumed > connected)
            yield gateway
    finally:
        await adapter.close()


async def until(town: LocalDiscord, so: Callable[[], bool]) -> None:
    def missing() -> str:
        return f"never; {[what for _, what, _ in town.backend.transcript[-20:]]}"

    await town.changes.until(lambda: so() or None, missing)


def texts(town: LocalDiscord, channel: str, who: str = "") -> list[str]:
    return [shown(one.content) for one in town.seen(channel, who)]


async def shows(town: LocalDiscord, channel: str, *wanted: str, who: str = "") -> None:
    """Wait until the bot has said just this there."""
    await town.changes.until(
        lambda: texts(town, channel, who) == list(wanted) or None,
        lambda: f"{wanted!r} never; there are {texts(town, channel, who)!r}",
    )


async def test_what_is_said_is_answered_and_the_menu_is_there(town: LocalDiscord, tmp_path: Path) -> None:
    async with running(tmp_path, town, EchoAgent()) as gateway:
        chat = town.private()
        town.says(chat, "hello @everyone")
        await shows(town, chat, "hello @everyone")
        await until(town, lambda: bool(town.backend.commands.get(None)))
        known = {spec.name for spec in gateway.commands}
    assert {command["name"] for command in town.backend.commands[None].values()} == known
    [message] = town.seen(chat)
    assert not message.mention_everyone, "everybody would be called"
    assert message.allowed_mentions.users == frozenset()


async def test_a_reply_grows_in_one_message_with_its_marks(town: LocalDiscord, tmp_path: Path) -> None:
    pause, chat = Pause(), town.private()
    async with running(
        tmp_path, town, ScriptedAgent(["Once ", pause, "**upon** a *time*\n\n| a | b |\n|---|---|\n| 1 | 2 |"])
    ):
        town.says(chat, "tell me")
        await pause.reached()
        await shows(town, chat, "Once")
        pause.over()
        await shows(town, chat, "Once **upon** a *time*\n\n```\na | b\n1 | 2\n```")
    assert any(event == "TYPING_START" for _, event, _ in town.backend.transcript)


async def test_a_slash_command_is_answered_to_its_person_alone_or_to_all(town: LocalDiscord, tmp_path: Path) -> None:
    club = town.channel()
    async with running(tmp_path, town, EchoAgent()):
        town.says(club, "hello")
        await shows(town, club, "hello")
        town.slash(club, "status")
        await until(town, lambda: len(list(filter(None, texts(town, club, "Ann")))) == 2)
        assert texts(town, club, "Ben") == ["hello"], "others read what was for one alone"
        town.slash(club, "title", "Tea")
        await shows(town, club, "hello", "This session is called Tea.", who="Ben")
        # What only its person saw of it is gone, and what was for all is a message like others.
        await until(town, lambda: len(town.acknowledged) == 2 and len(texts(town, club, "Ann")) == 3)
    assert [told["type"] for told in town.acknowledged] == [5, 5]


async def test_a_slash_command_that_nobody_acknowledged_is_answered_in_private(
    town: LocalDiscord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    club = town.channel()
    monkeypatch.setattr("segue.adapters.discord.adapter._ACKNOWLEDGED", 0.0)
    dead = KilledAt(Point.SEND_TAKEN, 1)
    async with running(tmp_path, town, EchoAgent(), probe=dead):
        id = town.slash(club, "status")
        await dead.dead.wait()
        # Discord forgets it: the gateway that comes next is too late.
    town.backend.interactions[int(id)].expires_at = town.backend.now_iso()
    async with running(tmp_path, town, EchoAgent()):
        await until(town, lambda: len(texts(town, town.private())) == 1)
    assert texts(town, club, "Ben") == []


async def test_buttons_answer_what_the_agent_asks(town: LocalDiscord, tmp_path: Path) -> None:
    async def deletes(work: Work) -> str:
        allowed = await work.ask("Delete the old files?", allows="delete_files")
        return "Deleted." if allowed == "yes" else "Kept."

    chat = town.private()
    async with running(tmp_path, town, as_agent(deletes)):
        town.says(chat, "tidy up")
        await shows(town, chat, "Delete the old files?")
        [asked] = town.seen(chat)
        town.presses(chat, str(asked.id), "no")
        await shows(town, chat, "Delete the old files?\n\nAnswered: no (Ann).", "Kept.")
        await until(town, lambda: bool(town.acknowledged))
    assert [told["type"] for told in town.acknowledged] == [7]
    assert town.seen(chat)[0].components == []


async def test_in_a_channel_it_answers_when_it_is_meant(town: LocalDiscord, tmp_path: Path) -> None:
    club, me = town.channel(), f"<@{town.backend.bot_user.id}>"
    needed = AccountSettings(public=True, mentions=Mentions.NEEDED)
    robot = town.backend.make_user("robot", bot=True)
    town.people["Robot"] = robot
    town.backend.add_member(town.guild.id, robot.id)
    async with running(tmp_path, town, EchoAgent(), needed):
        town.says(club, "among ourselves")
        town.says(club, f"{me} I am a bot as well", "Robot")
        town.says(club, f"{me} hello")
        await shows(town, club, "hello")
        [hello] = town.seen(club)
        assert hello.reference is not None, "nobody knows what it answers"
        town.answers(club, str(hello.id), "and?", "Ben")
        await shows(town, club, "hello", "and?")
        town.says(club, f"{me} /title Tea")
        await shows(town, club, "hello", "and?", "This session is called Tea.")


async def test_a_thread_and_a_post_are_shared_and_a_channel_is_not(town: LocalDiscord, tmp_path: Path) -> None:
    club, forum = town.channel(), town.channel("plans", type=15)

    def recalls(work: Work) -> list[str]:
        return ["I know Ann" if any("from Ann" in entry.text for entry in work.transcript) else "Who is there?"]

    agent = ScriptedAgent(otherwise=recalls)
    backend, ann = town.backend, town.people["Ann"].id
    thread = str(backend.create_thread(int(club), "Cake", ann).id)
    post = str(backend.create_thread(int(forum), "Party", ann).id)
    async with running(tmp_path, town, agent):
        for place in (club, thread, post):
            town.says(place, "hello from Ann")
            await until(town, lambda place=place: len(texts(town, place)) == 1)  # type: ignore[misc]
            town.says(place, "hello from Ben", "Ben")
            await until(town, lambda place=place: len(texts(town, place)) == 2)  # type: ignore[misc]
    assert [texts(town, place)[1] for place in (club, thread, post)] == ["Who is there?", "I know Ann", "I know Ann"]


async def test_files_come_and_go_and_what_is_answered_is_cited(town: LocalDiscord, tmp_path: Path) -> None:
    shelf, club = Shelf(), town.channel()
    here = ("Here.", await plans(shelf))
    agent = ScriptedAgent(here, here)
    async with running(tmp_path, town, agent, files=shelf):
        ben = town.says(club, "the cat sat", "Ben")
        await until(town, lambda: len(town.seen(club)) == 2)
        stored = town.backend.store_attachments(int(club), [("cat.png", b"a cat")])
        reference = town.backend.normalize_message_reference(int(club), {"channel_id": club, "message_id": ben})
        town.says(club, "is it this one?", attachments=stored, reference=reference)
        await until(town, lambda: len(town.seen(club)) == 4)
    [asked] = agent.works[-1].asked
    cited, said, file = asked.parts
    assert isinstance(cited, Citation)
    assert (cited.text, cited.author) == ("the cat sat", str(town.people["Ben"].id))
    assert said == Text("is it this one?")
    assert isinstance(file, File)
    assert await shelf.read(file) == b"a cat"
    assert [file["filename"] for one in town.seen(club) for file in one.attachments] == ["plans.md"] * 2


@pytest.mark.parametrize("forgotten", [False, True], ids=["resumed", "read back"])
async def test_what_was_said_while_it_was_cut_off_comes_once_in_order(
    town: LocalDiscord, tmp_path: Path, *, forgotten: bool
) -> None:
    chat, club = town.private(), town.channel()
    thread = str(town.backend.create_thread(int(club), "Cake", town.people["Ann"].id).id)
    places = (chat, club, thread)
    agent = EchoAgent()
    async with running(tmp_path, town, agent):
        for place in places:
            town.says(place, "before")
            await shows(town, place, "before")
        await town.cut()
        if forgotten:
            town.forget()
        for n in range(3):
            for place in places:
                town.says(place, f"meanwhile {n}")
        town.away = False
        await until(town, lambda: all(lines(town, place) == LINES for place in places))
        for place in places:
            town.says(place, "after")
        await until(town, lambda: all(lines(town, place) == [*LINES, "after"] for place in places))
    assert (town.identified, town.resumed > 0) == ((2, False) if forgotten else (1, True))


LINES = ["before", "meanwhile 0", "meanwhile 1", "meanwhile 2"]


def lines(town: LocalDiscord, channel: str) -> list[str]:
    """What was said, whether in one message or in several: what waits together is answered together."""
    return "\n".join(texts(town, channel)).replace("\n\n", "\n").split("\n")


async def test_what_came_while_it_was_dead_is_answered_once_by_the_next(town: LocalDiscord, tmp_path: Path) -> None:
    chat = town.private()
    async with running(tmp_path, town, EchoAgent()):
        town.says(chat, "before")
        await shows(town, chat, "before")
    town.says(chat, "meanwhile")
    async with running(tmp_path, town, EchoAgent()):
        await shows(town, chat, "before", "meanwhile")
    assert (town.identified, town.resumed) == (1, 1)


@pytest.mark.parametrize("late", [False, True], ids=["soon", "later than Discord knows the nonce"])
async def test_killed_between_the_call_and_its_record_it_says_it_once(
    town: LocalDiscord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, late: bool
) -> None:
    chat, killed = town.private(), KilledAt(Point.SEND_CALLED, 1)
    whole = AccountSettings(public=True, streams=Streams.WHOLE)
    async with running(tmp_path, town, EchoAgent(), whole, killed):
        town.says(chat, "only once")
        await killed.dead.wait()
    if late:
        town.forget_nonces()
        monkeypatch.setattr("segue.adapters.discord.adapter._REMEMBERED", 0.0)
    async with running(tmp_path, town, EchoAgent(), whole):
        town.says(chat, "and then")
        await shows(town, chat, "only once", "and then")


async def test_a_bot_that_may_not_read_says_so(town: LocalDiscord, tmp_path: Path) -> None:
    town.reads = False
    adapter = Discord("bot", Secret(TOKEN), Shelf(), town.url)
    async with gateway_on(tmp_path, EchoAgent(), adapter, account=EVERYBODY) as gateway:
        async with asyncio.timeout(60):
            while not gateway.accounts["discord.bot"].why:  # noqa: ASYNC110 -- nobody tells when
                await asyncio.sleep(0.01)
        assert "Turn on Message Content Intent" in gateway.accounts["discord.bot"].why
    await adapter.close()
