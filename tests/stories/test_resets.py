"""A conversation that ends by itself: when, what the agent may save before, what people see, and how to go back."""

import asyncio
import os
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from segue import Entry, Role, open_store
from segue.changes.sessions import resets
from segue.core.contracts.agents import Agent
from segue.core.contracts.probes import Point
from segue.core.messages import Aside
from segue.core.resets import Policies, Policy, When
from segue.core.settings import Settings
from segue.errors import Invalid
from segue.runtime.gateway import Gateway
from segue.testing import HandClock, Pause, ScriptedAgent, WhatsApp
from segue.testing.agents import said
from tests.drills.gateways import start
from tests.forge import kill
from tests.in_process import gateway_on
from tests.ports import free_port
from tests.stories.conftest import Stage
from tests.today import file_of_today

HOUR = 3600.0
SAVE = "Save what you want to remember."


class Rememberer(ScriptedAgent):
    """An agent that wants a last turn."""

    session_ending = SAVE


def told(agent: ScriptedAgent) -> list[str]:
    """What the agent was asked, its last turns included."""
    asides = [p.text for work in agent.works for d in work.asked for p in d.parts if isinstance(p, Aside)]
    return [said(work) or asides.pop(0) for work in agent.works]


def saved(path: list[Entry]) -> int:
    """How often a session's agent was asked to save."""
    return sum(isinstance(part, Aside) and part.text == SAVE for entry in path for part in entry.parts)


def running(
    where: str, platform: WhatsApp, agent: Agent, clock: HandClock, policy: Policy, replicas: int = 1
) -> AbstractAsyncContextManager[Gateway]:
    """Gateways on one database, the first of which the platform calls."""
    return gateway_on(
        where,
        agent,
        platform,
        clock=clock,
        replicas=replicas,
        routing=Settings(resets=Policies(policy)),
        poll=0.02,
        sweep=0.02,
        grace=0.1,
    )


async def test_an_idle_session_is_saved_by_its_agent_and_the_next_message_begins_anew(database: str) -> None:
    platform, clock = WhatsApp(), HandClock()
    ann, agent = platform.person("Ann"), Rememberer("hello", "(saved)", "who are you?")
    dm = platform.dm(ann)
    async with running(database, platform, agent, clock, Policy(When.IDLE, notice=True), replicas=2) as gateway:
        ann.says("I am Ann", dm)
        await dm.reads("hello")
        clock.passes(24 * HOUR)
        last = await agent.asked(2)
        assert [part.text for draft in last.asked for part in draft.parts if isinstance(part, Aside)] == [SAVE]
        async with asyncio.timeout(90):
            while "(saved)" not in [entry.text for entry in await gateway.store.path(last.session)]:  # noqa: ASYNC110 -- no message tells of it
                await asyncio.sleep(0.01)
        assert dm.replies == ["hello"], "what it saves is told to nobody"
        ann.says("do you know me?", dm)
        await dm.reads("who are you?")
        assert dm.replies[1] == (
            "This is a new session: nobody had written here for a day. The old one is kept: /undo goes back to it."
        )
        person = await gateway.store.person(ann.identity)
        [new, old] = await gateway.store.sessions(person)
        assert [e.text for e in await gateway.store.path(old.id) if e.author.role is Role.AGENT] == ["hello", "(saved)"]
        [binding] = [b for b in await gateway.store.history(old.id) if b.until is not None]
        assert binding.ended_why == "idle"
        assert (old.id, new.id) == (last.session, agent.works[2].session)
    assert len(agent.works) == 3


async def test_without_the_owners_word_nobody_is_told_and_an_agent_that_saves_nothing_is_not_asked(
    database: str,
) -> None:
    platform, clock = WhatsApp(), HandClock()
    ann, agent = platform.person("Ann"), ScriptedAgent("hello", "who are you?")
    dm = platform.dm(ann)
    async with running(database, platform, agent, clock, Policy(When.IDLE)):
        ann.says("I am Ann", dm)
        await dm.reads("hello")
        clock.passes(24 * HOUR)
        ann.says("do you know me?", dm)
        await dm.reads("who are you?")
    assert dm.replies == ["hello", "who are you?"]
    assert len(agent.works) == 2


async def test_a_message_need_not_wait_until_the_agent_has_saved(database: str) -> None:
    platform, clock, pause = WhatsApp(), HandClock(), Pause()
    ann, agent = platform.person("Ann"), Rememberer("hello", [pause, "(saved)"], "who are you?")
    dm = platform.dm(ann)
    async with running(database, platform, agent, clock, Policy(When.IDLE)):
        ann.says("I am Ann", dm)
        await dm.reads("hello")
        clock.passes(24 * HOUR)
        await pause.reached()
        ann.says("do you know me?", dm)
        await dm.reads("who are you?")
        pause.over()
        await agent.idle()
    assert agent.works[2].session != agent.works[1].session


async def test_undo_goes_back_to_the_session_that_ended_and_asks_again_there(database: str) -> None:
    platform, clock = WhatsApp(), HandClock()
    ann, agent = platform.person("Ann"), Rememberer("hello", "(saved)", "who are you?", "you are Ann", "(saved again)")
    dm = platform.dm(ann)
    async with running(database, platform, agent, clock, Policy(When.IDLE)):
        ann.says("I am Ann", dm)
        await dm.reads("hello")
        clock.passes(24 * HOUR)
        await agent.asked(2)
        await agent.idle()
        ann.says("do you know me?", dm)
        await dm.reads("who are you?")
        ann.says("/undo", dm)
        await dm.reads("you are Ann")
        clock.passes(23 * HOUR)
        assert len(agent.works) == 4, "it was just brought back"
        clock.passes(HOUR)
        await agent.asked(5)
        await agent.idle()
    sessions = [work.session for work in agent.works]
    assert sessions[0] == sessions[1] == sessions[3] == sessions[4] != sessions[2]
    assert [text for text in told(agent) if text != SAVE] == ["I am Ann", "do you know me?", "do you know me?"]


async def test_other_hours_count_for_sessions_that_were_looked_at_before(tmp_path: Path) -> None:
    platform, clock = WhatsApp(), HandClock()
    ann, agent, where = platform.person("Ann"), Rememberer("hello", "(saved)"), file_of_today(tmp_path / "segue.db")
    dm = platform.dm(ann)
    async with running(where, platform, agent, clock, Policy(When.IDLE, idle_minutes=7 * 24 * 60)) as gateway:
        ann.says("I am Ann", dm)
        await dm.reads("hello")
        while await gateway.store.driver.read(resets.to_look_at, clock() + 24 * HOUR, 1):
            clock.passes(60)
            await asyncio.sleep(0.01)
    clock.passes(2 * HOUR)
    async with running(where, platform, agent, clock, Policy(When.IDLE, idle_minutes=60)):
        await agent.asked(2)
        await agent.idle()


async def test_background_work_keeps_a_session(database: str) -> None:
    platform, clock = WhatsApp(), HandClock()
    ann, agent = platform.person("Ann"), Rememberer(otherwise=lambda work: [f"re: {said(work)}"])
    dm = platform.dm(ann)
    async with running(database, platform, agent, clock, Policy(When.IDLE, idle_minutes=60)):
        ann.says("build it", dm)
        await dm.reads("re: build it")
        background = agent.works[0].background
        await background.keep("the build", 10 * HOUR)
        clock.passes(9 * HOUR)
        ann.says("is it done?", dm)
        await dm.reads("re: is it done?")
        await background.done("the build")
        clock.passes(2 * HOUR)
        await agent.asked(3)
        ann.says("thanks", dm)
        await dm.reads("re: thanks")
        with pytest.raises(Invalid, match="at most"):
            await background.keep("for ever", 1e9)
    sessions = [work.session for work in agent.works]
    assert sessions[0] == sessions[1] == sessions[2] != sessions[3]
    assert told(agent)[2] == SAVE


@pytest.mark.parametrize(
    ("zone", "night"),
    [
        pytest.param("Europe/Berlin", (2025, 3, 30), id="Berlin skips two to three"),
        pytest.param("Europe/Berlin", (2025, 10, 26), id="Berlin repeats two to three"),
        pytest.param("America/New_York", (2025, 11, 2), id="New York repeats one to two"),
        pytest.param("Australia/Lord_Howe", (2025, 10, 5), id="Lord Howe skips half an hour"),
    ],
)
async def test_on_a_night_when_clocks_change_a_day_ends_once(
    database: str, zone: str, night: tuple[int, int, int]
) -> None:
    platform, here = WhatsApp(), ZoneInfo(zone)
    clock = HandClock(datetime(*night, 0, 30, tzinfo=here).timestamp())
    ann, agent = platform.person("Ann"), Rememberer(otherwise=lambda work: [f"re: {said(work)}"])
    dm = platform.dm(ann)
    async with running(database, platform, agent, clock, Policy(When.DAILY, hour=2, zone=zone), replicas=2):
        for quarter in range(20):
            # Every quarter of an hour through the night, a word.
            ann.says(str(quarter), dm)
            await dm.reads(f"re: {quarter}")
            await agent.idle()
            clock.passes(900)
        await agent.asked(21)
        await agent.idle()
    words = [(work.session, text) for work, text in zip(agent.works, told(agent), strict=True) if text != SAVE]
    sessions = [session for session, _ in words]
    assert len(set(sessions)) == 2, "a day ends once"
    first = sessions.index(sessions[-1])
    began = datetime(*night, 0, 30, tzinfo=here).timestamp() + 900 * first
    shown = [datetime.fromtimestamp(moment, here).hour for moment in (began - 900, began)]
    assert shown[0] < 2 <= shown[1]
    assert told(agent).count(SAVE) == 1


async def test_a_clock_that_jumps_ends_no_session_twice(database: str) -> None:
    platform, clock = WhatsApp(), HandClock()
    ann, agent = platform.person("Ann"), Rememberer(otherwise=lambda work: [f"re: {said(work)}"])
    dm = platform.dm(ann)
    async with running(database, platform, agent, clock, Policy(When.IDLE, idle_minutes=60), replicas=2):
        ann.says("one", dm)
        await dm.reads("re: one")
        clock.passes(48 * HOUR)
        await agent.asked(2)
        await agent.idle()
        clock.passes(-48 * HOUR)
        ann.says("two", dm)
        await dm.reads("re: two")
        clock.passes(48 * HOUR)
        ann.says("three", dm)
        await dm.reads("re: three")
        await agent.asked(5)
        await agent.idle()
    by_text = {text: work.session for work, text in zip(agent.works, told(agent), strict=True) if text != SAVE}
    assert by_text["one"] == by_text["two"] != by_text["three"], "set back, the clock says that nothing is over"
    assert told(agent).count(SAVE) == 2, "after what was said the second time there is something to save again"


@pytest.mark.parametrize("point", [Point.TURN_STARTED, Point.TURN_ANSWERED])
async def test_a_gateway_that_is_killed_while_a_session_ends_ends_it_after_all_and_once(
    stage: Stage, point: Point, tmp_path: Path
) -> None:
    town, spy = stage.town, tmp_path / "spy"
    more = {"idle": 1 / 60, "ending": SAVE, "spy": str(spy)}
    doomed = await asyncio.to_thread(start, stage.plan(dies_at=point, dies_after=2, **more))
    await town.ready()
    await town.say("chat-0", "chat-0-message-0")
    await town.hears("chat-0", "I am chat-0-message-0")
    await asyncio.to_thread(doomed.join)
    assert doomed.exitcode == -9
    other = await asyncio.to_thread(start, stage.plan(**more | {"port": free_port()}))
    try:
        async with stage.gateway(**more) as pid, asyncio.timeout(90), await open_store(stage.where) as store:
            assert pid != os.getpid()
            session = town.calls("chat-0")[0]["session"]
            news = asyncio.Event()
            store.driver.listen(lambda _: news.set())
            while not saved(await store.path(session)):
                await news.wait()
                news.clear()
            await town.say("chat-0", "chat-0-message-1")
            await town.hears("chat-0", "I am chat-0-message-1")
            path = await store.path(session)
    finally:
        await asyncio.to_thread(kill, other)
    assert town.calls("chat-0")[-1]["session"] != session
    assert saved(path) == 1
    endings = [line for line in spy.read_text().splitlines() if "asked=(Draft(author=Author(role=<Role.GATEWAY" in line]
    assert len({line.partition(", context=")[0] for line in endings}) == 1, "every try has the same key"
    assert len(endings) == (2 if point is Point.TURN_ANSWERED else 1)
    assert len(town.texts("chat-0")) == 2
