"""The fakes and a real gateway: on every persona a conversation works as it would on the platform."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from segue.core.contracts.agents import Agent
from segue.core.lanes import Kind
from segue.core.messages import Sending
from segue.core.settings import AccountSettings, Streams
from segue.runtime.gateway import Gateway
from segue.testing.agents import EchoAgent, Pause, ScriptedAgent
from segue.testing.chats import Someone, To
from segue.testing.faults import Call, Fault, RateLimit
from segue.testing.personas import PERSONAS, Discord, Feishu, Matrix, Persona, Slack, Telegram, WhatsApp
from tests.in_process import gateway_on


def running(
    path: Path, platform: Persona, agent: Agent, streams: Streams = Streams.WHOLE
) -> AbstractAsyncContextManager[Gateway]:
    """A gateway on a database of its own."""
    return gateway_on(path, agent, platform, account=AccountSettings(public=True, streams=streams), grace=10.0)


@pytest.fixture(params=PERSONAS, ids=lambda persona: persona.name)
def platform(request: pytest.FixtureRequest) -> Persona:
    persona: type[Persona] = request.param
    return persona()


@pytest.fixture
def ann(platform: Persona) -> Someone:
    return platform.person("Ann")


@pytest.mark.parametrize("kind", [Kind.DM, Kind.GROUP])
async def test_what_is_said_is_answered_there(tmp_path: Path, platform: Persona, ann: Someone, kind: Kind) -> None:
    chat = platform.dm(ann) if kind is Kind.DM else platform.group()
    async with running(tmp_path, platform, EchoAgent()):
        ann.says("hello", chat)
        await chat.reads("hello")
        ann.says("again", chat, to=To.AGENT)
        await chat.reads("again")
        await platform.settles()
    assert chat.replies == ["hello", "again"]


async def test_what_is_told_again_is_answered_once(tmp_path: Path, platform: Persona, ann: Someone) -> None:
    dm = platform.dm(ann)
    async with running(tmp_path, platform, EchoAgent()):
        ann.says("hello", dm)
        await dm.reads("hello")
        platform.tells_again()
        ann.says("bye", dm)
        await dm.reads("bye")
        await platform.settles()
    assert dm.replies == ["hello", "bye"]


async def test_what_is_said_while_nobody_listens_is_answered_later(
    tmp_path: Path, platform: Persona, ann: Someone
) -> None:
    dm = platform.dm(ann)
    ann.says("is anybody there?", dm)
    async with running(tmp_path, platform, EchoAgent()):
        await dm.reads("is anybody there?")


async def test_a_platform_that_refuses_for_now_gets_it_later(tmp_path: Path, platform: Persona, ann: Someone) -> None:
    dm = platform.dm(ann)
    platform.misbehaves(RateLimit(0.01))
    platform.misbehaves(Fault.UNREACHABLE)
    async with running(tmp_path, platform, EchoAgent()):
        ann.says("hello", dm)
        await dm.reads("hello")
    assert dm.replies == ["hello"]


async def test_a_line_that_breaks_after_sending_doubles_only_what_the_class_allows(
    tmp_path: Path, platform: Persona, ann: Someone
) -> None:
    dm = platform.dm(ann)
    platform.misbehaves(Fault.TAKES_AND_BREAKS)
    async with running(tmp_path, platform, EchoAgent()):
        ann.says("hello", dm)
        await platform.called(Call.SEND)
        ann.says("bye", dm)
        # What is said to one address goes in order: the first is settled when the second is there.
        await dm.reads("bye")
    twice = [text for text in dm.replies if text.endswith("hello")]
    if platform.adapter().sending is Sending.BLIND:
        assert len(twice) == 2
        assert twice[1] != "hello", "the second says that it may be a duplicate"
    else:
        assert twice == ["hello"]


@pytest.mark.parametrize("persona", [Slack, Discord, Telegram, Matrix, Feishu])
async def test_a_line_that_breaks_while_a_reply_is_written_loses_none_of_it(
    tmp_path: Path, persona: type[Slack | Discord | Telegram | Matrix | Feishu]
) -> None:
    platform, more = persona(), Pause()
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    platform.misbehaves(Fault.TAKES_AND_BREAKS)
    async with running(tmp_path, platform, ScriptedAgent(["Once upon", more, " a time"]), Streams.LIVE):
        ann.says("tell me a story", dm)
        await platform.called(Call.SEND)
        more.over()
        await dm.reads("Once upon a time")
    assert dm.replies.count("Once upon a time") == 1
    assert len(dm.replies) <= 2, "at most what was begun is left behind"


async def test_people_talk_in_threads(tmp_path: Path) -> None:
    slack = Slack()
    ann, channel = slack.person("Ann"), slack.group("plans")
    agent = ScriptedAgent("one", "two", "three")
    async with running(tmp_path, slack, agent):
        root = ann.says("where shall we go?", channel)
        await channel.reads("one")
        ann.says("to the sea", channel, quoting=root)
        thread = channel.within(root.id)
        await thread.reads("two")
        slack.person("Ben").says("or the hills", thread)
        await thread.reads("three")
    assert channel.replies == ["one"]
    assert thread.replies == ["two", "three"]
    assert len({work.session for work in agent.works}) == 2, "a thread is a lane of its own"


async def test_a_reply_is_seen_while_it_is_written(tmp_path: Path) -> None:
    telegram, more = Telegram(), Pause()
    ann = telegram.person("Ann")
    dm = telegram.dm(ann)
    async with running(tmp_path, telegram, ScriptedAgent(["Once upon", more, " a time"]), Streams.LIVE):
        ann.says("tell me a story", dm)
        await dm.reads("Once upon")
        more.over()
        await dm.reads("Once upon a time")
    assert dm.replies == ["Once upon a time"]
    assert dm.address in telegram.typed


async def test_both_ids_of_somebody_are_one_lane(tmp_path: Path) -> None:
    whatsapp, agent = WhatsApp(), ScriptedAgent("one", "two", "three")
    ann = whatsapp.person("Ann")
    dm = whatsapp.dm(ann)
    async with running(tmp_path, whatsapp, agent):
        for n, shown in enumerate([ann.ids[:1], ann.ids, ann.ids[1:]], 1):
            ann.shows(*shown)
            ann.says(f"message {n}", dm)
            await agent.asked(n)
            await dm.reads_some(n)
    assert len({work.session for work in agent.works}) == 1
