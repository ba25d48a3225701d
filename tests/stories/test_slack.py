"""Conversations on Slack, end to end: a real gateway, and local-slack with the agent view and streams put in."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import JSONResponse

from segue.adapters.slack import Slack
from segue.adapters.slack.api import Api
from segue.adapters.slack.incoming import View
from segue.core.contracts.agents import Agent, Progress
from segue.core.contracts.probes import Point, Probe
from segue.core.lanes import Address, Identity
from segue.core.messages import ToolCall, ToolResult
from segue.core.settings import AccountSettings, DmThreads
from segue.core.values import Secret
from segue.database.transactions import unheeded
from segue.runtime.gateway import Gateway
from segue.testing import EchoAgent, Pause, ScriptedAgent, Shelf
from segue.testing.agents import Step
from tests.contracts.test_slack import BRISK
from tests.in_process import gateway_on
from tests.servers.slack import APP_TOKEN, PEOPLE, TOKEN, Between, slack
from tests.stories.files import KilledAt

CHANNEL, TEAM = "C0001", "T01TEST"
AGENT = AccountSettings(public=True, dm_threads=DmThreads.FRESH)


class Workspace:
    """local-slack, and Ann's private chat with the app."""

    def __init__(self, between: Between, url: str, chat: str) -> None:
        self.between = between
        self.url = url
        self.chat = chat

    async def asks(self, text: str, thread: str = "") -> Address:
        """Ann writes to the app; returns the thread in which it is answered."""
        ts = await self.between.says(self.chat, text, "Ann", thread)
        return Address("slack", "bot", "", self.chat, thread or ts)

    async def asks_in_channel(self, text: str, who: str = "Ann", thread: str = "") -> Address:
        """Somebody writes in a thread of a channel, which the app began; returns the thread."""
        root = thread or (await self.between.ask("chat.postMessage", channel=CHANNEL, text="Tea"))["ts"]
        await self.between.says(CHANNEL, text, who, root)
        return Address("slack", "bot", "", CHANNEL, root)

    async def texts(self, at: Address) -> list[str]:
        return [seen.text for seen in await self.between.read(at)]

    async def shows(self, at: Address, *wanted: str) -> None:
        """Wait until the app has said just this there."""

        async def is_so() -> bool:
            return await self.texts(at) == list(wanted)

        async def missing() -> str:
            return f"{wanted!r} never; there are {await self.texts(at)!r}"

        await self.between.changes.until_so(is_so, missing)

    def called(self, method: str) -> int:
        return [name for name, _ in self.between.calls].count(method)


@pytest.fixture
async def there() -> AsyncIterator[Workspace]:
    async with slack() as (between, url):
        yield Workspace(between, url, await between.private("Ann"))


@asynccontextmanager
async def running(
    path: Path, there: Workspace, agent: Agent, account: AccountSettings = AGENT, probe: Probe = unheeded
) -> AsyncIterator[Gateway]:
    """A gateway on Slack alone, which shows it as an agent; Ann is its host."""
    shelf = Shelf()
    api = Api(Secret(TOKEN), there.url, Secret(APP_TOKEN))
    adapter = Slack("bot", api, shelf, view=View.AGENT, pace=BRISK)
    hosts = (Identity("slack", "bot", PEOPLE["Ann"]),)
    more: Any = {"account": account, "hosts": hosts, "probe": probe, "files": shelf, "grace": 0.1}
    try:
        async with gateway_on(path, agent, adapter, **more) as gateway:
            await there.between.changes.until(lambda: there.between.listeners or None, lambda: "it never listened")
            yield gateway
    finally:
        await adapter.close()


async def test_a_reply_is_a_stream_with_the_agents_steps(there: Workspace, tmp_path: Path) -> None:
    looks, hot, agents = Pause(), Pause(), there.between.agents
    call, result = ToolCall("c1", "kettle", {}), ToolResult("c1", "hot")
    steps: list[Step] = [Progress("looking it up"), looks, "Once ", call, hot, result, "**upon** a time"]
    async with running(tmp_path, there, ScriptedAgent(steps)):
        at = await there.asks("tell me")
        await looks.reached()
        await there.between.changes.until(lambda: agents.steps or None, lambda: "no step was shown")
        looks.over()
        await hot.reached()
        await there.shows(at, "Once")
        hot.over()
        await there.shows(at, "Once\n\n**upon** a time")
        await there.between.changes.until(lambda: not agents.streams or None, lambda: "the stream goes on")
    assert agents.steps == [
        ("looking it up", "in_progress"),
        ("kettle", "in_progress"),
        ("kettle", "complete"),
    ]
    assert (there.called("chat.startStream"), there.called("chat.stopStream")) == (1, 1)
    assert there.called("chat.update") == 0, "what is streamed needs no edit"
    assert agents.statuses == [(at.thread, "processing"), ("", "active")]


async def test_in_a_channel_a_reply_is_a_stream_for_whoever_asked(there: Workspace, tmp_path: Path) -> None:
    pause, again, agents = Pause(), Pause(), there.between.agents
    async with running(tmp_path, there, ScriptedAgent(["Once ", pause, "upon"], ["And ", again, "then"])):
        at = await there.asks_in_channel("tell me")
        await pause.reached()
        await there.shows(at, "Once")
        assert list(agents.streams.values()) == ["Once"]
        pause.over()
        await there.shows(at, "Once upon")
        await there.asks_in_channel("and then?", "Ben", at.thread)
        await again.reached()
        await there.shows(at, "Once upon", "And")
        again.over()
        await there.shows(at, "Once upon", "And then")
        await there.between.changes.until(lambda: not agents.streams or None, lambda: "the stream goes on")
    begun = [fields for method, fields in there.between.calls if method == "chat.startStream"]
    assert [(one["recipient_user_id"], one["recipient_team_id"]) for one in begun] == [
        (PEOPLE["Ann"], TEAM),
        (PEOPLE["Ben"], TEAM),
    ]
    assert there.called("chat.update") == 0, "what is streamed needs no edit"


@pytest.mark.parametrize("end", ["| a | b |\n|---|---|\n| 1 | 2 |", "see https://a.example/x", "<!channel>"])
async def test_what_a_stream_cannot_show_is_an_edit(there: Workspace, tmp_path: Path, end: str) -> None:
    pause, agents = Pause(), there.between.agents
    async with running(tmp_path, there, ScriptedAgent(["Once\n\n", pause, end])):
        at = await there.asks("tell me")
        await pause.reached()
        await there.shows(at, "Once")
        pause.over()
        shown = "```\na | b\n1 | 2\n```" if "|" in end else end
        await there.shows(at, f"Once\n\n{shown}")
    assert not agents.streams
    assert there.called("chat.update") == 1


async def test_a_stream_that_slack_ended_goes_on_by_edits(there: Workspace, tmp_path: Path) -> None:
    first, second, agents = Pause(), Pause(), there.between.agents
    async with running(tmp_path, there, ScriptedAgent(["Once ", first, "upon ", second, "a time"])):
        at = await there.asks("tell me")
        await first.reached()
        await there.shows(at, "Once")
        agents.stop(next(iter(agents.streams)))
        first.over()
        await second.reached()
        await there.shows(at, "Once upon")
        second.over()
        await there.shows(at, "Once upon a time")


async def test_an_app_that_may_not_stream_edits(there: Workspace, tmp_path: Path) -> None:
    refusal = JSONResponse({"ok": False, "error": "unknown_method"})
    there.between.refuse = lambda method, _: refusal if method == "chat.startStream" else None
    pause = Pause()
    async with running(tmp_path, there, ScriptedAgent(["Once ", pause, "upon"])):
        at = await there.asks("tell me")
        await pause.reached()
        await there.shows(at, "Once")
        pause.over()
        await there.shows(at, "Once upon")


@pytest.mark.parametrize(
    ("point", "asks"),
    [
        (Point.STREAM_SENT, Workspace.asks),
        (Point.STREAM_SENT, Workspace.asks_in_channel),
        (Point.STREAM_PLACED, Workspace.asks),
        (Point.TURN_FINISHED, Workspace.asks),
        (Point.SEND_CALLED, Workspace.asks),
    ],
)
async def test_killed_while_it_streams_it_says_it_once(
    there: Workspace, tmp_path: Path, point: Point, asks: Callable[..., Awaitable[Address]]
) -> None:
    killed = KilledAt(point, 1)
    async with running(tmp_path, there, EchoAgent(), probe=killed):
        at = await asks(there, "only once")
        await killed.dead.wait()
    async with running(tmp_path, there, EchoAgent()):
        await there.shows(at, "only once")
        await asks(there, "and then", thread=at.thread)
        await there.shows(at, "only once", "and then")
    assert not there.between.agents.streams, "a stream goes on for ever"


async def test_a_thread_is_called_like_its_session_whoever_names_it(there: Workspace, tmp_path: Path) -> None:
    titles = there.between.agents.titles

    async def is_called(title: str, thread: str) -> None:
        await there.between.changes.until(lambda: titles.get(thread) == title or None, lambda: f"it is {titles}")

    async with running(tmp_path, there, EchoAgent()) as gateway:
        tea, milk = await there.asks("about tea"), await there.asks("about milk")
        await there.shows(tea, "about tea")
        await there.shows(milk, "about milk")
        # In words, by Slack's own field, and from another place; the names are one person's.
        await there.asks("/title Tea", tea.thread)
        await is_called("Tea", tea.thread)
        event = {"type": "agent_session_title_changed", "channel": there.chat, "user": PEOPLE["Ann"]}
        await there.between.happens({**event, "thread_ts": milk.thread, "title": "Tea", "event_ts": "1.000001"})
        await is_called("Tea #2", milk.thread)
        host = await gateway.store.person(Identity("slack", "bot", PEOPLE["Ann"]))
        [session] = [standing.session for standing in await gateway.store.lanes() if standing.lane.address == milk]
        assert session is not None
        await gateway.store.set_title(session, "Milk", host)
        await is_called("Milk", milk.thread)
        # A thread that goes on with something else is called like that.
        await there.asks("/resume Tea", milk.thread)
        await is_called("Tea", milk.thread)


async def test_the_stop_button_ends_the_turn(there: Workspace, tmp_path: Path) -> None:
    pause, agents = Pause(), there.between.agents
    async with running(tmp_path, there, ScriptedAgent(["Once ", pause, "upon a time"])):
        at = await there.asks("tell me")
        await pause.reached()
        await there.shows(at, "Once")
        [stream] = agents.streams
        # Slack ends the stream itself, and leaves the rest to the app.
        agents.stop(stream)
        event = {"type": "agent_session_stopped", "channel": there.chat, "user": PEOPLE["Ann"], "thread_ts": at.thread}
        await there.between.happens({**event, "event_ts": "2.000001", "streaming_message_ts": [stream]})
        await there.between.changes.until(
            lambda: agents.statuses[-1][1] == "active" or None, lambda: f"it goes on: {agents.statuses}"
        )
        texts = await there.texts(at)
    assert "upon a time" not in " ".join(texts)
    assert any("Stopped" in text for text in texts), texts
