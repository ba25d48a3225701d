"""Conversations on Feishu, end to end: a real gateway, and crabline with threads, cards and files put in.

crabline knows no cards: how they behave is made after CardKit's public documentation (tests/servers/feishu.py).
"""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from segue.adapters.feishu import Feishu
from segue.adapters.feishu.api import Api
from segue.agents.given import as_agent
from segue.core.contracts.agents import Agent, Work
from segue.core.contracts.probes import Point, Probe
from segue.core.lanes import Address, Identity
from segue.core.messages import Citation, File, Text, plain_text
from segue.core.settings import AccountSettings, Mentions, Quotes, Streams
from segue.core.values import Secret
from segue.database.transactions import unheeded
from segue.runtime.gateway import Gateway
from segue.testing import EchoAgent, HandClock, Pause, ScriptedAgent, Shelf
from segue.testing.agents import said
from tests.contracts.test_feishu import BRISK
from tests.in_process import gateway_on
from tests.servers.feishu import APP, BOT, PEOPLE, SECRET, Between, feishu
from tests.stories.files import KilledAt, plans
from tests.stories.idle import IDLE, ends_and_comes_back
from tests.stories.square import REMEMBERS

EVERYBODY = AccountSettings(public=True)
WHOLE = AccountSettings(public=True, streams=Streams.WHOLE)


class Tenant:
    """crabline, Ann's private chat with the app, and a group."""

    def __init__(self, between: Between, url: str) -> None:
        self.between = between
        self.url = url
        self.chat = Address("feishu", "bot", "", between.private("Ann"))
        self.group = Address("feishu", "bot", "", "oc_group")

    async def asks(self, text: str, at: Address | None = None, who: str = "Ann", **about: Any) -> str:
        """Somebody writes; returns the message's id."""
        there = at or self.chat
        doctor = (lambda payload: _with(payload, about)) if about else None
        return await self.between.says(there.chat, text, who, there.thread, doctor)

    def texts(self, at: Address | None = None) -> list[str]:
        return [seen.text for seen in self.between.read(at or self.chat)]

    async def shows(self, *wanted: str, at: Address | None = None) -> None:
        """Wait until the app has said just this there."""
        await self.between.changes.until(
            lambda: self.texts(at) == list(wanted) or None, lambda: f"{wanted!r} never; there are {self.texts(at)!r}"
        )

    @property
    def streaming(self) -> list[str]:
        """The cards that somebody sees and that go on."""
        shown = [one.card for one in self.between.said.values() if one.card]
        return [one for one in shown if self.between.cards[one]["card"]["config"]["streaming_mode"]]

    def called(self, method: str, end: str) -> int:
        return len([1 for how, path, _ in self.between.calls if (how, path.endswith(end)) == (method, True)])


def _with(payload: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    payload["event"]["message"] |= about
    return payload


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[Tenant]:
    async with feishu(tmp_path) as (between, url):
        yield Tenant(between, url)


@asynccontextmanager
async def running(
    path: Path,
    there: Tenant,
    agent: Agent,
    account: AccountSettings = EVERYBODY,
    probe: Probe = unheeded,
    files: Shelf | None = None,
    **settings: Any,
) -> AsyncIterator[Gateway]:
    """A gateway on Feishu alone, connected; Ann is its host."""
    shelf = files or Shelf()
    adapter = Feishu("bot", Api(APP, Secret(SECRET), there.url), shelf, pace=BRISK)
    hosts = (Identity("feishu", "bot", PEOPLE["Ann"]),)
    more: Any = {"account": account, "hosts": hosts, "probe": probe, "files": shelf, "grace": 0.1, **settings}
    try:
        async with gateway_on(path, agent, adapter, **more) as gateway:
            await there.between.changes.until(lambda: there.between.listeners or None, lambda: "it never listened")
            yield gateway
    finally:
        await adapter.close()


async def test_a_reply_streams_as_a_card_that_is_ended(there: Tenant, tmp_path: Path) -> None:
    pause = Pause()
    end = "**upon** a time <at id=all></at>\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    async with running(tmp_path, there, ScriptedAgent(["Once ", pause, end])):
        await there.asks("tell me")
        await pause.reached()
        await there.shows("Once")
        assert len(there.streaming) == 1
        pause.over()
        await there.shows("Once **upon** a time <at id=all></at>\n\n```\na | b\n1 | 2\n```")
    assert not there.streaming, "the card goes on for ever"
    [answer] = there.between.read(there.chat)
    content = there.between.card_of(answer.message)["body"]["elements"][0]["content"]
    assert "<at id=all" not in content, "everybody would be called"


async def test_a_card_that_feishu_ended_by_itself_goes_on(there: Tenant, tmp_path: Path) -> None:
    first, second = Pause(), Pause()
    async with running(tmp_path, there, ScriptedAgent(["Once ", first, "upon ", second, "a time"])):
        await there.asks("tell me")
        await first.reached()
        await there.shows("Once")
        for card in there.streaming:
            there.between.cards[card]["card"]["config"]["streaming_mode"] = False
        first.over()
        await second.reached()
        await there.shows("Once upon")
        second.over()
        await there.shows("Once upon a time")
    assert not there.streaming


async def test_a_turn_that_is_stopped_ends_its_card(there: Tenant, tmp_path: Path) -> None:
    pause = Pause()
    async with running(tmp_path, there, ScriptedAgent(["Once ", pause, "upon a time"])):
        await there.asks("tell me")
        await pause.reached()
        await there.shows("Once")
        await there.asks("/stop")
        await there.between.changes.until(lambda: not there.streaming or None, lambda: f"it goes on: {there.texts()}")
    assert "upon a time" not in " ".join(there.texts())


@pytest.mark.parametrize("point", [Point.STREAM_SENT, Point.STREAM_PLACED, Point.TURN_FINISHED, Point.SEND_CALLED])
async def test_killed_while_it_streams_it_says_it_once_and_ends_its_card(
    there: Tenant, tmp_path: Path, point: Point
) -> None:
    killed = KilledAt(point, 1)
    async with running(tmp_path, there, EchoAgent(), probe=killed):
        await there.asks("only once")
        await killed.dead.wait()
    # Another machine takes over, whose clock is behind: its changes still count.
    for card in there.between.cards.values():
        card["sequence"] += 600 if card["sequence"] else 0
    async with running(tmp_path, there, EchoAgent()):
        await there.shows("only once")
        await there.asks("and then")
        await there.shows("only once", "and then")
    assert not there.streaming, "a card goes on for ever"


@pytest.mark.parametrize("late", [False, True], ids=["soon", "later than Feishu knows the key"])
async def test_killed_between_the_call_and_its_record_it_says_it_once(
    there: Tenant, tmp_path: Path, *, late: bool
) -> None:
    killed = KilledAt(Point.SEND_CALLED, 1)
    async with running(tmp_path, there, EchoAgent(), WHOLE, killed):
        await there.asks("only **once**")
        await killed.dead.wait()
    if late:
        there.between.forget_keys()
    async with running(tmp_path, there, EchoAgent(), WHOLE):
        await there.asks("and then")
        await there.shows("only **once**", "and then")


async def test_buttons_in_a_thread_answer_what_the_agent_asks(there: Tenant, tmp_path: Path) -> None:
    async def deletes(work: Work) -> str:
        allowed = await work.ask("Delete the old files?", allows="delete_files")
        return "Deleted." if allowed == "yes" else "Kept."

    root = await there.between.says(there.chat.chat, "about files")
    thread = Address("feishu", "bot", "", there.chat.chat, root)
    async with running(tmp_path, there, as_agent(deletes)):
        await there.asks("tidy up", thread)
        await there.shows("Delete the old files?", at=thread)
        [asked] = there.between.read(thread)
        buttons = [one for one in there.between.card_of(asked.message)["body"]["elements"] if one["tag"] == "button"]
        n = [one["behaviors"][0]["value"]["choice"] for one in buttons].index("no")
        await there.between.presses(asked.message, n)
        await there.shows("Delete the old files?\n\nAnswered: no (Ann).", "Kept.", at=thread)
        assert [one["tag"] for one in there.between.card_of(asked.message)["body"]["elements"]] == ["markdown"]
    assert not there.streaming


async def test_in_a_group_it_answers_when_it_is_meant(there: Tenant, tmp_path: Path) -> None:
    needed = AccountSettings(public=True, mentions=Mentions.NEEDED, streams=Streams.WHOLE)
    me: dict[str, Any] = {"mentions": [{"key": "@_user_1", "id": {"open_id": BOT}, "name": "Segue"}]}
    async with running(tmp_path, there, EchoAgent(), needed):
        await there.asks("among ourselves", there.group)
        hello = await there.asks("@_user_1 hello", there.group, **me)
        await there.shows("hello", at=there.group)
        [answer] = there.between.read(there.group)
        assert there.between.said[answer.message].parent == hello, "nobody knows what it answers"
        await there.asks("and?", there.group, "Ben", parent_id=answer.message, root_id=hello)
        await there.shows("hello", "and?", at=there.group)
        await there.asks("@_user_1 /title Tea", there.group, **me)
        await there.shows("hello", "and?", "This session is called Tea.", at=there.group)


async def test_files_come_and_go_and_what_is_answered_is_cited(there: Tenant, tmp_path: Path) -> None:
    shelf = Shelf()
    agent = ScriptedAgent(("Here.", await plans(shelf)), ("Thanks.",))
    async with running(tmp_path, there, agent, WHOLE, files=shelf):
        ben = await there.asks("the cat sat", there.group, "Ben")
        await there.between.changes.until(lambda: len(there.texts(there.group)) == 2 or None, lambda: "never")
        there.between.resources["img_1"] = b"\xff\xd8\xff a cat"
        lines = [[{"tag": "text", "text": "is it this one?"}], [{"tag": "img", "image_key": "img_1"}]]
        post = {"title": "", "content": lines}
        about = {"message_type": "post", "content": json.dumps(post), "parent_id": ben, "root_id": ben}
        await there.asks("x", there.group, **about)
        await there.between.changes.until(lambda: "Thanks." in there.texts(there.group) or None, lambda: "never")
    [asked] = agent.works[-1].asked
    cited, words, file = asked.parts
    assert isinstance(cited, Citation)
    assert (cited.text, cited.author, cited.name) == ("the cat sat", PEOPLE["Ben"], "Ben")
    assert words == Text("is it this one?")
    assert isinstance(file, File)
    assert (file.name, file.media, await shelf.read(file)) == ("picture.jpeg", "image/jpeg", b"\xff\xd8\xff a cat")
    [sent] = [one for one in there.between.said.values() if one.kind == "file"]
    assert there.between.resources[sent.content["file_key"]]


async def test_one_chat_holds_several_conversations(there: Tenant, tmp_path: Path) -> None:
    """`/title`, `/sessions`, `/resume`, `/branch`, `/new`, and quotes that go back to what wrote them."""

    def counts(work: Work) -> list[str]:
        return [f"{said(work)} after {len([entry for entry in work.transcript if entry.text])}"]

    told: list[str] = []

    async def asks(text: str, answer: str = "", **about: Any) -> None:
        await there.asks(text, **about)
        count = len(told) + 1
        await there.between.changes.until(
            lambda: len(there.texts()) == count or None, lambda: f"{text} was never answered: {there.texts()}"
        )
        told.append(there.texts()[-1])
        assert answer in told[-1]

    async with running(tmp_path, there, ScriptedAgent(otherwise=counts), WHOLE, quotes=Quotes.SWITCH):
        await asks("about tea", "about tea after 0")
        await asks("/title Tea", "called Tea")
        await asks("/sessions new about milk", "about milk after 0")
        first = there.between.read(there.chat)[0].message
        await asks("green?", "green? after 2", parent_id=first, root_id=first)
        await asks("/branch", "Tea #2")
        await asks("black?", "black? after 4")
        await asks("/new")
        await asks("white?", "white? after 0")
        await asks("/resume Tea #1", "Tea")
        await asks("again", "again after 4")
        await asks("/sessions", "about milk")


async def test_an_idle_session_ends_and_undo_goes_back_to_it(there: Tenant, tmp_path: Path) -> None:
    clock = HandClock(time.time())

    async def counts(count: int) -> list[str]:
        await there.between.changes.until(lambda: len(there.texts()) >= count or None, lambda: f"{there.texts()}")
        return there.texts()

    async with running(tmp_path, there, REMEMBERS, WHOLE, clock=clock, **IDLE):
        await ends_and_comes_back(clock, there.asks, counts)


async def test_what_is_recalled_while_it_waits_is_never_answered(there: Tenant, tmp_path: Path) -> None:
    pause = Pause()
    root = await there.between.says(there.chat.chat, "about tea")
    thread = Address("feishu", "bot", "", there.chat.chat, root)
    agent = ScriptedAgent(["One."], ["Two ", pause, "of them."], ["Four."])
    async with running(tmp_path, there, agent, WHOLE):
        await there.shows("One.")
        await there.asks("two?", thread)
        await pause.reached()
        waiting = await there.asks("three?", thread)
        await there.asks("four?", thread)
        await there.between.recalls(waiting)
        # What comes after it is taken in after it.
        await there.asks("/status", thread)
        await there.between.changes.until(lambda: there.texts(thread) or None, lambda: "no status")
        pause.over()
        await there.between.changes.until(lambda: there.texts(thread)[-1:] == ["Four."] or None, lambda: "never")
    assert [plain_text(draft.parts) for draft in agent.works[-1].asked] == ["four?"]
