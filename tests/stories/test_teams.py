"""The stories of sessions on Slack and on Discord, by their own adapters: a real gateway, local-slack and simcord."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from segue.agents.given import as_agent
from segue.core.accounts import Reach
from segue.core.contracts.agents import Agent, Work
from segue.core.lanes import Address, Identity, Kind
from segue.core.messages import plain_text
from segue.core.settings import AccountSettings, Mentions, Quotes, Streams
from segue.core.text.notices import ELSEWHERE
from segue.core.transcripts import Role
from segue.runtime.gateway import Gateway
from segue.testing import HandClock, Pause, ScriptedAgent
from segue.testing.waits import Changes
from tests.adapters.discord import DiscordHarness
from tests.contracts.test_slack import SlackHarness
from tests.in_process import gateway_on
from tests.servers.discord import local_discord
from tests.servers.slack import BOT, PEOPLE, slack
from tests.stories.files import plans
from tests.stories.idle import IDLE, ends_and_comes_back
from tests.stories.square import REMEMBERS, recalls

EVERYBODY = AccountSettings(public=True, streams=Streams.WHOLE)
MEANT = AccountSettings(public=True, streams=Streams.WHOLE, mentions=Mentions.NEEDED)


class Team:
    """Ann, who is the host, and Ben, on one of the two platforms."""

    def __init__(self, harness: SlackHarness | DiscordHarness, changes: Changes, ids: dict[str, str]) -> None:
        self.harness = harness
        self.changes = changes
        self.ids = ids
        self.is_slack = isinstance(harness, SlackHarness)
        self.agent: Agent = ScriptedAgent(otherwise=recalls)
        self.clock: Callable[[], float] = time.time
        self.gateway: Gateway

    @asynccontextmanager
    async def open(self, path: Path, account: AccountSettings = EVERYBODY, **settings: Any) -> AsyncIterator[Gateway]:
        """The gateway runs while inside, and is connected."""
        adapter = self.harness.adapter()
        async with gateway_on(path, self.agent, adapter, **self.settings(account, **settings)) as gateway:
            await _until(lambda: gateway.accounts[f"{adapter.platform}.bot"].reach is Reach.CONNECTED)
            self.gateway = gateway
            yield gateway

    def settings(self, account: AccountSettings = EVERYBODY, **more: Any) -> Any:
        """The settings of a gateway there."""
        hosts = (Identity("slack" if self.is_slack else "discord", "bot", self.ids["Ann"]),)
        return {"account": account, "hosts": hosts, "clock": self.clock, "files": self.harness.shelf, **more}

    async def thread(self) -> Address:
        """The one thread that a session is spoken to in."""
        found = {standing.lane.address for standing in await self.gateway.store.lanes() if standing.session}
        [thread] = [address for address in found if address.thread]
        return thread

    async def texts(self, at: Address, who: str = "") -> list[str]:
        """What the agent has said somewhere, as everybody sees it, or one person does."""
        if who and isinstance(self.harness, SlackHarness):
            return [seen.text for seen in await self.harness.read_as(at, who)]
        return [seen.text for seen in await self.harness.read(at)]

    async def asks(self, at: Address, text: str, who: str = "Ann", quotes: str = "") -> str:
        """Somebody says something; returns what the agent says next there."""
        before = len(await self.texts(at))
        if quotes:
            assert isinstance(self.harness, DiscordHarness)
            await self.harness.quote(at, quotes, text, who)
        else:
            await self.harness.say(at, text, who)
        return (await self.counts(at, before + 1))[-1]

    async def counts(self, at: Address, count: int, who: str = "") -> list[str]:
        """Wait until the agent has said so many things somewhere."""

        async def are_there() -> bool:
            return len(await self.texts(at, who)) >= count

        async def missing() -> str:
            return f"never {count} in {at.key}: {await self.texts(at, who)}"

        await self.changes.until_so(are_there, missing)
        return await self.texts(at, who)

    @property
    def knew(self) -> list[str]:
        """What the agent knew of when it was last asked."""
        assert isinstance(self.agent, ScriptedAgent)
        said = (entry for entry in self.agent.works[-1].transcript if entry.author.role is not Role.GATEWAY)
        return [plain_text(entry.parts) for entry in said]


@pytest.fixture(params=["slack", "discord"])
async def team(request: pytest.FixtureRequest) -> AsyncIterator[Team]:
    if request.param == "slack":
        async with slack() as (between, url):
            there = SlackHarness(between, url)
            yield Team(there, between.changes, PEOPLE)
            for adapter in there.adapters:
                await adapter.close()
        return
    async with local_discord() as town:
        ids = {name: str(user.id) for name, user in town.people.items()}
        harness = DiscordHarness(town)
        yield Team(harness, town.changes, ids)
        await harness.close()


on_slack = pytest.mark.parametrize("team", ["slack"], indirect=True)
on_discord = pytest.mark.parametrize("team", ["discord"], indirect=True)


async def test_sessions_have_titles_and_are_listed_resumed_and_branched(team: Team, tmp_path: Path) -> None:
    async with team.open(tmp_path):
        dm = await team.harness.chat(Kind.DM)
        await team.asks(dm, "about tea")
        assert await team.asks(dm, "/title Tea") == "This session is called Tea."
        assert await team.asks(dm, "/sessions new about milk") == "You said: about milk"
        assert team.knew == []
        [*listed, how] = (await team.asks(dm, "/sessions")).splitlines()
        assert listed[:2] == ["1. “Tea”: about tea", "2. about milk (here)"]
        assert how == "/sessions N opens one of them."
        assert await team.asks(dm, "/sessions 1") == "Back in “Tea”."
        assert "Tea #2" in await team.asks(dm, "/branch")
        await team.asks(dm, "with lemon")
        assert team.knew == ["about tea", "You said: about tea"]
        assert await team.asks(dm, "/resume Tea #1") == "Back in “Tea #1”."
        await team.asks(dm, "plain")
        assert team.knew == ["about tea", "You said: about tea"], "what was said in the branch stays there"
        assert "Took back the last exchange" in await team.asks(dm, "/undo")
        assert "1. “Tea #1” (here)" in await team.asks(dm, "/resume")
        await team.asks(dm, "with sugar")
        tree = (await team.asks(dm, "/tree")).splitlines()
        # Numbers that aren't in a row, of which Markdown would make a list with others.
        [number] = [line.partition(":")[0] for line in tree if line.endswith(": with sugar")]
        assert (await team.asks(dm, f"/rewind {number}")).startswith("Went back to that message.")


async def test_a_channel_is_everybodys_own_and_a_thread_is_shared(team: Team, tmp_path: Path) -> None:
    async with team.open(tmp_path):
        club = await team.harness.chat(Kind.GROUP)
        await team.asks(club, "I am Ann")
        await team.asks(club, "I am Ben", "Ben")
        assert team.knew == []
        thread = await team.harness.adapters[0].open_thread(club, "Plans", "a key")
        await team.asks(thread, "Ann wants cake")
        await team.asks(thread, "Ben wants tea", "Ben")
        assert team.knew == ["Ann wants cake", "You said: Ann wants cake"]


async def test_a_private_session_is_handed_off_into_a_thread_and_comes_back(team: Team, tmp_path: Path) -> None:
    async with team.open(tmp_path, MEANT):
        dm, club = await team.harness.chat(Kind.DM), await team.harness.chat(Kind.GROUP)
        await team.harness.say(club, "a place that is known")
        await team.asks(dm, "about tea")
        await team.asks(dm, "/title Tea")
        asked = await team.asks(dm, f"/handoff {team.harness.adapters[0].platform}:{club.chat}")
        assert "can read" in asked, "nobody is asked whether others may read it"
        await team.asks(dm, "/yes")
        assert (await team.counts(dm, 5))[-1].startswith("This conversation goes on in")
        thread = await team.thread()
        assert len(await team.texts(thread)) == 1, "the agent doesn't speak first"
        # What it began itself is its own: nobody needs to name it there.
        await team.asks(thread, "with milk?", "Ben")
        assert team.knew[:2] == ["about tea", "You said: about tea"]
        await team.asks(dm, "/resume Tea")
        await team.asks(dm, "still hot?")
        assert team.knew[-1] == "You said: with milk?"


async def test_what_was_said_in_private_is_not_brought_among_others_without_a_yes(team: Team, tmp_path: Path) -> None:
    async with team.open(tmp_path):
        dm, club = await team.harness.chat(Kind.DM), await team.harness.chat(Kind.GROUP)
        await team.asks(dm, "my secret")
        await team.asks(dm, "/title Diary")
        await team.harness.say(club, "/resume Diary")
        # On Slack the question is shown to her alone, on Discord in her private chat.
        asked = await (team.counts(club, 1, "Ann") if team.is_slack else team.counts(dm, 3))
        assert "Diary" in asked[-1]
        assert not any("Diary" in text for text in await team.texts(club, "Ben")), "everybody reads her title"
        await team.asks(club, "hello", "Ben")
        assert team.knew == []


async def test_what_one_asks_for_oneself_is_shown_to_nobody_else(team: Team, tmp_path: Path) -> None:
    async with team.open(tmp_path) as gateway:
        dm, club = await team.harness.chat(Kind.DM), await team.harness.chat(Kind.GROUP)
        await team.asks(dm, "my secret")
        await team.asks(club, "hello")
        await gateway.store.index()
        alone = club if team.is_slack else dm
        for typed in ("/status", "/usage", "/search hello"):
            before = len(await team.texts(alone, "Ann"))
            await team.harness.say(club, typed)
            shown = (await team.counts(alone, before + 1, "Ann"))[-1]
            assert "secret" not in shown
        # Elsewhere a line says where the answer is, on Discord; nobody reads the answers themselves.
        assert set(await team.texts(club, "Ben")) <= {"You said: hello", ELSEWHERE}


async def test_an_idle_session_ends_and_undo_goes_back_to_it(team: Team, tmp_path: Path) -> None:
    team.agent, team.clock = REMEMBERS, (clock := HandClock(time.time()))
    async with team.open(tmp_path, **IDLE):
        dm = await team.harness.chat(Kind.DM)
        await ends_and_comes_back(clock, partial(team.harness.say, dm), partial(team.counts, dm))


async def test_what_still_waits_is_changed_and_withdrawn_by_its_author(team: Team, tmp_path: Path) -> None:
    pause = Pause()
    team.agent = ScriptedAgent([pause, "at last"], otherwise=recalls)
    async with team.open(tmp_path):
        dm = await team.harness.chat(Kind.DM)
        await team.harness.say(dm, "take your time")
        await pause.reached()
        changed, gone = await team.harness.say(dm, "tea"), await team.harness.say(dm, "my secret")
        await team.harness.change(dm, changed, "coffee")
        await team.harness.delete(dm, gone)
        # A command is answered while the turn runs, so what came before it was taken in.
        await team.asks(dm, "/title Drinks")
        pause.over()
        assert (await team.counts(dm, 3))[1:] == ["at last", "You said: coffee"]


async def test_what_its_author_deletes_is_hidden_also_after_a_restart(team: Team, tmp_path: Path) -> None:
    async with team.open(tmp_path):
        dm = await team.harness.chat(Kind.DM)
        secret = await team.harness.say(dm, "my secret")
        await team.counts(dm, 1)
        await team.asks(dm, "about tea")
    async with team.open(tmp_path):
        # By then, what was missed was read back.
        await team.asks(dm, "here I am")
        await team.harness.delete(dm, secret)
        await team.asks(dm, "what do you know?")
        assert team.knew[:4] == ["", "You said: my secret", "about tea", "You said: about tea"]
        name = {standing.name for standing in await team.gateway.store.lanes()}
        assert "" not in name, "a chat lost its name by the deletion"


async def test_a_question_in_a_channel_is_for_its_person_alone_and_answered_by_a_button(
    team: Team, tmp_path: Path
) -> None:
    async def deletes(work: Work) -> str:
        if "tidy" not in plain_text(work.asked[0].parts):
            return "Hello."
        return "Deleted." if await work.ask("Delete the old files?", allows="delete_files") == "yes" else "Kept."

    team.agent = as_agent(deletes)
    async with team.open(tmp_path):
        dm, club = await team.harness.chat(Kind.DM), await team.harness.chat(Kind.GROUP)
        await team.asks(dm, "hello")
        await team.harness.say(club, "tidy up")
        if isinstance(team.harness, SlackHarness):
            between = team.harness.between
            await team.counts(club, 1, "Ann")
            [card] = [one for one in await between.messages(club) if one.get("ephemeral_to") == PEOPLE["Ann"]]
            no = next(b for b in card["attachments"][0]["blocks"][0]["elements"] if b["value"] == "no")
            await between.control("interact", channel=club.chat, messageTs=card["ts"], user=PEOPLE["Ann"], action=no)
        else:
            town = team.harness.town
            await team.counts(dm, 2)
            town.presses(dm.chat, str(town.seen(dm.chat)[-1].id), "no")

        async def is_kept() -> bool:
            return "Kept." in await team.texts(club)

        async def missing() -> str:
            return f"{await team.texts(club, 'Ann')} {await team.texts(dm)}"

        await team.changes.until_so(is_kept, missing)
        assert not any("Delete" in text for text in await team.texts(club, "Ben")), "everybody was asked"


async def test_files_come_and_go(team: Team, tmp_path: Path) -> None:
    team.agent = agent = ScriptedAgent(("Here.", await plans(team.harness.shelf)))
    async with team.open(tmp_path):
        dm = await team.harness.chat(Kind.DM)
        await team.harness.attach(dm, "cat.png", b"a cat")
        said = await team.counts(dm, 2)
    [asked] = agent.works[0].asked
    [file] = asked.parts
    assert (file.name, await team.harness.shelf.read(file)) == ("cat.png", b"a cat")  # type: ignore[union-attr, arg-type]
    assert said[0] == "Here."


@on_slack
async def test_in_a_channel_it_answers_when_it_is_meant(team: Team, tmp_path: Path) -> None:
    assert isinstance(team.harness, SlackHarness)
    between = team.harness.between
    async with team.open(tmp_path, MEANT):
        club = await team.harness.chat(Kind.GROUP)
        await team.harness.say(club, "among ourselves")
        await team.harness.say(club, "/new")
        for n, (text, answer) in enumerate(
            (("hello", "You said: hello"), ("/title Tea", "This session is called Tea.")), 1
        ):
            await between.control("message", channel=club.chat, user=PEOPLE["Ann"], text=f"<@{BOT}> {text}")
            assert (await team.counts(club, n))[-1] == answer
        # In what a person began it must be named.
        root = await team.harness.say(club, "let's plan")
        thread = Address("slack", "bot", "", club.chat, root)
        await team.harness.say(thread, "among ourselves")
        await between.control(
            "message", channel=club.chat, user=PEOPLE["Ben"], text=f"<@{BOT}> and you?", thread_ts=root
        )
        assert await team.counts(thread, 1) == ["You said: and you?"]


@on_discord
@pytest.mark.parametrize("quotes", [Quotes.ONCE, Quotes.SWITCH])
async def test_a_reply_goes_to_the_session_that_wrote_what_it_answers(
    team: Team, tmp_path: Path, quotes: Quotes
) -> None:
    async with team.open(tmp_path, quotes=quotes):
        dm = await team.harness.chat(Kind.DM)
        await team.asks(dm, "about tea")
        tea = (await team.harness.read(dm))[-1].message
        await team.asks(dm, "/sessions new about milk")
        await team.asks(dm, "is it hot?", quotes=tea)
        assert team.knew == ["about tea", "You said: about tea"]
        await team.asks(dm, "and now?")
        assert (team.knew[0] == "about tea") is (quotes is Quotes.SWITCH)


async def test_one_of_two_gateways_is_connected_and_the_other_goes_on(team: Team, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        first = AsyncExitStack()
        await first.enter_async_context(team.open(tmp_path, lease=1.0))
        dm = await team.harness.chat(Kind.DM)
        await team.asks(dm, "one")
        second = gateway_on(tmp_path, team.agent, team.harness.adapter(), **team.settings(lease=1.0))
        gateway = await stack.enter_async_context(second)
        name = f"{dm.platform}.bot"
        await _until(lambda: gateway.accounts[name].reach is Reach.ELSEWHERE)
        await team.asks(dm, "two")
        await first.aclose()
        await team.asks(dm, "three")
        assert gateway.accounts[name].reach is Reach.CONNECTED
        assert await team.texts(dm) == ["You said: one", "You said: two", "You said: three"]


async def _until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not so():  # noqa: ASYNC110 -- nobody tells when
            await asyncio.sleep(0.01)
