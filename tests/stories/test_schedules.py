"""Work for later: asked for by a person or by an agent, done once when it is due, delivered where it belongs."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from segue.changes.exchange import schedules
from segue.changes.forgetting import cleaning, erasure
from segue.changes.forgetting.erasure import Cause, Reason
from segue.core.contracts.agents import Agent, Work
from segue.core.lanes import Kind, Place
from segue.core.messages import Notice, ToolResult
from segue.core.settings import AccountSettings, Redaction, Streams
from segue.core.values import Moment, SessionId
from segue.runtime.files.folder import Folder
from segue.runtime.gateway import Gateway
from segue.testing import HandClock, ScriptedAgent, WhatsApp
from segue.testing.agents import Step, Uses, said
from segue.testing.chats import Someone
from segue.testing.waits import PATIENCE
from tests.in_process import gateway_on

NINE = datetime(2026, 6, 1, 9, 0, tzinfo=UTC).timestamp()
HOUR, DAY = 3600.0, 86400.0


def asked_for(work: Work) -> str:
    """What a turn was asked: a person's words, or the gateway's."""
    notices = [part.text for draft in work.asked for part in draft.parts if isinstance(part, Notice)]
    return "".join(notices) or said(work)


def echo(work: Work) -> Iterable[Step]:
    return [f"re: {asked_for(work)}"]


class House:
    """A platform on which Ann, who is the host, and Bob talk to gateways that share a database and a clock."""

    def __init__(self, where: str, folder: Path) -> None:
        self.where = where
        self.folder = folder
        self.platform = WhatsApp()
        self.clock = HandClock(NINE - HOUR)
        self.ann, self.bob = self.platform.person("Ann"), self.platform.person("Bob")
        self.dm, self.bobs = self.platform.dm(self.ann), self.platform.dm(self.bob)
        self.group = self.platform.group("Team")

    def gateway(
        self, agent: Agent, replicas: int = 1, redaction: Redaction = Redaction.NONE
    ) -> AbstractAsyncContextManager[Gateway]:
        """Gateways until the block ends."""
        home = Place(self.group.address, Kind.GROUP, "Team")
        account = AccountSettings(public=True, streams=Streams.WHOLE, home=home)
        return gateway_on(
            self.where,
            agent,
            self.platform,
            account=account,
            clock=self.clock,
            replicas=replicas,
            hosts=(self.ann.identity,),
            data=str(self.folder),
            redaction=redaction,
            poll=0.02,
            grace=0.1,
        )


@pytest.fixture
def house(database: str, tmp_path: Path) -> House:
    return House(database, tmp_path / "data")


async def hello(house: House, who: Someone) -> None:
    chat = house.platform.dm(who)
    who.says("hello", chat)
    await chat.reads("re: hello")


async def test_a_person_has_something_done_every_day_and_is_answered_once_a_day(house: House) -> None:
    agent = ScriptedAgent(otherwise=echo)
    async with house.gateway(agent, replicas=2):
        await hello(house, house.ann)
        house.ann.says("/schedule every day at 9 tell me the news", house.dm)
        line = "every day at 09:00 (UTC), next 2026-06-01 09:00: tell me the news"
        await house.dm.reads(f"Scheduled: {line}. /schedules lists it.")
        for day in range(3):
            house.clock.now = NINE + day * DAY
            await house.dm.reads_some(3 + day)
        house.ann.says("/schedules", house.dm)
        next_line = line.replace("06-01", "06-04")
        await house.dm.reads(f"1. {next_line}\n\n/schedules cancel N cancels one of them.")
        house.ann.says("/schedules cancel 1", house.dm)
        await house.dm.reads("Cancelled: tell me the news")
        house.clock.now = NINE + 5 * DAY
        await hello_again(house)
    done = [text for text in house.dm.replies if "tell me the news" in text and text.startswith("re: ")]
    words = 'Scheduled work is due. Do it now and answer with its result: "tell me the news"'
    assert done == [f"re: {words} It is due again and again (every day at 09:00, UTC)."] * 3
    assert len({work.session for work in agent.works}) == 1, "it is done in the conversation that it is part of"


async def hello_again(house: House) -> None:
    house.ann.says("hello again", house.dm)
    await house.dm.reads("re: hello again")


async def test_an_agent_schedules_lists_and_cancels(house: House) -> None:
    def script(work: Work) -> Iterable[Step]:
        match said(work):
            case "later":
                yield Uses("1", "schedule", arguments={"task": "call mum", "when": "in 2h"})
                yield Uses("2", "schedule", arguments={"task": "call dad", "when": "in 3h", "deliver": "local"})
                yield Uses("3", "schedules_list", arguments={})
                yield "noted"
            case "not dad":
                [listed] = [p for e in work.transcript for p in e.parts if isinstance(p, ToolResult) and p.id == "3"]
                yield Uses("4", "schedule_cancel", arguments={"id": listed.content["schedules"][1]["id"]})
                yield Uses("5", "schedule_cancel", arguments={"id": "another's"})
                yield Uses("6", "schedule", arguments={"task": "x", "when": "soon"})
                yield "done"
            case _:
                yield f"re: {asked_for(work)}"

    agent = ScriptedAgent(otherwise=script)
    async with house.gateway(agent) as gateway:
        house.ann.says("later", house.dm)
        await house.dm.reads("noted")
        house.ann.says("not dad", house.dm)
        await house.dm.reads("done")
        house.clock.passes(2 * HOUR)
        words = 'Scheduled work is due. Do it now and answer with its result: "call mum"'
        await house.dm.reads(f"re: {words}")
        path = await gateway.store.path(agent.works[0].session)
    results = {part.id: part for entry in path for part in entry.parts if isinstance(part, ToolResult)}
    assert [s["task"] for s in results["3"].content["schedules"]] == ["call mum", "call dad"]
    assert results["4"].content["state"] == "cancelled"
    assert results["5"].failed
    assert results["6"].failed
    assert "is not a time" in results["6"].content


async def test_an_agent_that_is_told_no_ids_names_places_by_what_stands_for_them(house: House) -> None:
    homes: list[str] = []

    def script(work: Work) -> Iterable[Step]:
        if asked_for(work) == "later":
            # Only the host's agent is told of it; whoever heard of it there names it in vain.
            homes.extend(work.context.partition("- Home of ")[2].partition("chat ")[2].split('"')[1:2])
            to = f"{house.platform.name}:{homes[0]}"
            yield Uses("1", "schedule", arguments={"task": "call mum", "when": "in 1h", "deliver": to})
        elif asked_for(work) == "thanks":
            yield Uses("2", "schedules_list", arguments={})
            yield Uses("3", "sessions_history", arguments={"session": work.session})
        yield f"re: {asked_for(work)}"

    agent = ScriptedAgent(otherwise=script)
    cem = house.platform.person("Cem +49 151 2345678")
    told = []
    async with house.gateway(agent, redaction=Redaction.PSEUDONYMS) as gateway:
        for who, where in ((house.ann, house.dm), (cem, house.platform.dm(cem))):
            for text in ("later", "thanks"):
                who.says(text, where)
                await where.reads(f"re: {text}")
            path = await gateway.store.path(agent.works[-1].session)
            told.append({part.id: part for entry in path for part in entry.parts if isinstance(part, ToolResult)})
        house.clock.passes(HOUR)
        await house.group.reads_some(1)
    hosts, cems = told
    name = f"{house.platform.name}.{house.platform.account}"
    assert [listed["deliver"].partition("-")[0] for listed in hosts["2"].content["schedules"]] == [f"{name}:hidden"]
    assert "no chat of yours" in cems["1"].content
    assert [entry["by"] for entry in cems["3"].content["entries"]] == ["person", "agent"]
    for id in (house.group.id, *house.ann.ids, *cem.ids, "2345678"):
        assert id not in repr((agent.works, told))


async def test_it_goes_to_a_file_to_a_home_or_to_a_chat(house: House) -> None:
    agent = ScriptedAgent(otherwise=echo)
    async with house.gateway(agent) as gateway:
        await hello(house, house.ann)
        await hello(house, house.bob)
        platform = house.platform.name
        house.ann.says(f"/schedule at 9 for Bob --to {platform}:{house.bobs.id}", house.dm)
        refused = (await house.dm.reads_some(2))[-1]
        assert refused.startswith("deliver: others read there who haven't read this session.")
        for to in ("local", platform, f"{platform}:{house.dm.id}"):
            house.ann.says(f"/schedule at 9 for {to.partition(':')[0]} --to {to}", house.dm)
        await house.dm.reads_some(5)
        # A home is where it is by then.
        moved = house.platform.group("New team")
        await gateway.store.set_home(moved.place, await gateway.store.person(house.ann.identity))
        house.clock.now = NINE
        words = "re: Scheduled work is due. Do it now and answer with its result: "
        await moved.reads(f'{words}"for {platform}"')
        await house.dm.reads(f'{words}"for {platform}"')
        await agent.idle()
        await gateway._schedules.once()
    assert len(house.dm.replies) == 6, "nothing else of it comes here"
    assert len(house.bobs.replies) == 1
    [file] = house.folder.rglob("*.md")
    assert file.name == "2026-06-01T0900+0000.md"
    assert file.read_text() == f'# for local\n\n{words}"for local"\n'


async def test_a_result_that_is_forgotten_while_it_is_stored_does_not_stay(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, stored = Folder.put, asyncio.Event()
    delete, deleted = Folder.delete, asyncio.Event()
    async with house.gateway(ScriptedAgent(otherwise=echo)) as gateway:

        async def forgets(folder: Folder, where: str, chunks: AsyncIterator[bytes]) -> None:
            content = b"".join([chunk async for chunk in chunks])
            ann = await gateway.store.person(house.ann.identity)
            for session in await gateway.store.sessions(ann):
                reason = Reason(ann.id, Cause.ASKED, house.clock())
                await gateway.store.driver.write(erasure.session, session.id, reason)
            while True:
                if not await gateway.store.driver.read(cleaning.to_clean, 10):
                    break
                await asyncio.sleep(0.01)
            await put(folder, where, once(content))
            stored.set()

        async def deletes(folder: Folder, where: str, until: Moment) -> bool:
            done = await delete(folder, where, until)
            if stored.is_set():
                deleted.set()
            return done

        monkeypatch.setattr(Folder, "put", forgets)
        monkeypatch.setattr(Folder, "delete", deletes)
        await hello(house, house.ann)
        house.ann.says("/schedule at 9 tell me a secret --to local", house.dm)
        await house.dm.reads_some(2)
        house.clock.now = NINE
        await stored.wait()
        # The pass that stored it deletes it.
        async with asyncio.timeout(PATIENCE):
            await deleted.wait()
    assert not [*house.folder.rglob("*.md")]


async def once(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def test_others_reach_their_own_places_only(house: House) -> None:
    async with house.gateway(ScriptedAgent(otherwise=echo)):
        await hello(house, house.ann)
        await hello(house, house.bob)
        platform = house.platform.name
        for to in ("local", platform, f"{platform}:{house.dm.id}", f"{platform}:nowhere", "mars"):
            house.bob.says(f"/schedule at 9 look --to {to}", house.bobs)
        house.bob.says(f"/schedule at 9 look --to {platform}:{house.bobs.id}", house.bobs)
        replies = await house.bobs.reads_some(7)
    name = f"{platform}.{house.platform.account}"
    told = sorted(replies[1:])
    assert [reply for reply in told if reply.startswith("Scheduled: ")] == [
        f"Scheduled: 2026-06-01 09:00 (UTC), to {name}:{house.bobs.id}: look. /schedules lists it."
    ]
    [one] = [reply for reply in told if house.dm.id in reply and "no chat of yours" in reply]
    [two] = [reply for reply in told if "nowhere" in reply]
    assert one.replace(house.dm.id, "nowhere") == two, "what isn't theirs reads like what isn't there"


async def test_what_was_missed_is_told_and_done_once(house: House) -> None:
    agent = ScriptedAgent(otherwise=echo)
    async with house.gateway(agent):
        await hello(house, house.ann)
        house.ann.says("/schedule every hour look", house.dm)
        await house.dm.reads_some(2)
    house.clock.now = NINE + 5 * HOUR + 600
    async with house.gateway(agent, replicas=2):
        await house.dm.reads_some(4)
        await agent.idle()
    late = "It was due at 2026-06-01 14:00 (UTC), when no gateway ran. Before that it was missed 5 times."
    notice, answer = house.dm.replies[2:]
    assert notice == f"Scheduled work is done now: look. {late}"
    assert answer.endswith(late)


async def test_it_goes_on_in_the_conversation_that_its_chat_is_in_by_then(house: House) -> None:
    agent = ScriptedAgent(otherwise=echo)
    async with house.gateway(agent) as gateway:
        await hello(house, house.ann)
        house.ann.says("/schedule at 9 call mum", house.dm)
        await house.dm.reads_some(2)
        house.ann.says("/new", house.dm)
        await house.dm.reads_some(3)
        house.clock.now = NINE
        await house.dm.reads_some(4)
        house.ann.says("done", house.dm)
        await house.dm.reads("re: done")
        person = await gateway.store.person(house.ann.identity)
        sessions = [session.id for session in await gateway.store.sessions(person)]
    where: list[SessionId] = [work.session for work in agent.works]
    assert where[1] == where[2] != where[0]
    assert len(sessions) == 2


async def test_a_turn_that_is_tried_again_schedules_nothing_twice(house: House) -> None:
    def script(work: Work) -> Iterable[Step]:
        if asked_for(work) != "later":
            return [f"re: {asked_for(work)}"]
        tries = len(agent.works)
        # A model that is asked again gives its calls new ids.
        asks = Uses(f"try {tries}", "schedule", arguments={"task": "call mum", "when": "today at 9"})
        return [asks, RuntimeError("cut off") if tries == 1 else "noted"]

    agent = ScriptedAgent(otherwise=script)
    async with house.gateway(agent) as gateway:
        house.ann.says("later", house.dm)
        await agent.asked(1)
        await agent.idle()
        # By the time of the second try it is too late to ask for that.
        house.clock.now = NINE + 1
        await house.dm.reads("noted")
        await agent.asked(3)
        await house.dm.reads_some(2)
        person = await gateway.store.person(house.ann.identity)
        assert len(await gateway.store.sessions(person)) == 1
    results = [p for e in agent.works[-1].transcript for p in e.parts if isinstance(p, ToolResult)]
    assert {result.content["task"] for result in results} == {"call mum"}
    assert len({result.content["id"] for result in results}) == 1
    assert sum("call mum" in reply for reply in house.dm.replies) == 1


async def test_a_clock_that_was_ahead_for_a_moment_silences_nothing(house: House) -> None:
    async with house.gateway(ScriptedAgent(otherwise=echo)) as gateway:
        await hello(house, house.ann)
        house.ann.says("/schedule every day at 9 tell me the news", house.dm)
        await house.dm.reads_some(2)
        house.clock.now = NINE + 9 * DAY
        await house.dm.reads_some(3)
        house.clock.now = NINE - HOUR
        async with asyncio.timeout(PATIENCE):
            later = NINE + 99 * DAY
            while [one.due for one in await gateway.store.driver.read(schedules.due, later, 9)] != [NINE]:  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.02)
        house.clock.now = NINE + 1
        await house.dm.reads_some(4)
