"""What a gateway does while a turn runs, when it stops, and with what it can't understand."""

import asyncio
import time
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import asyncpg
import pytest

from segue import Invalid, Role, open_store
from segue.changes import audit
from segue.changes.exchange import deliveries
from segue.core.contracts.adapters import Accepted, Letter
from segue.core.contracts.agents import Agent
from segue.core.lanes import Address, Identity, Place
from segue.core.messages import Arrival, Delivery, Speaker, Text, plain_text
from segue.core.moves import Consent, Resume
from segue.core.settings import AccountSettings, Busy, Mentions
from segue.database.sqlite import Sqlite
from segue.runtime import replica
from segue.runtime.gateway import Gateway
from segue.runtime.turns.turns import Slots
from segue.testing.agents import EchoAgent, Pause, ScriptedAgent, SteeredAgent, said
from segue.testing.chats import To
from segue.testing.faults import Fault
from segue.testing.personas import Matrix, Persona, Telegram, WhatsApp
from segue.testing.waits import PATIENCE
from tests.in_process import gateway_on


def running(
    path: Path,
    platform: Persona,
    agent: Agent,
    busy: Busy = Busy.QUEUE,
    mentions: Mentions = Mentions.OPTIONAL,
    poll: float = 0.05,
) -> AbstractAsyncContextManager[Gateway]:
    """A gateway on the database in this folder."""
    account = AccountSettings(public=True, mentions=mentions)
    return gateway_on(path, agent, platform, account=account, busy=busy, poll=poll, lease=1.0, grace=0.1)


async def test_what_a_person_says_while_their_turn_runs_is_one_turn_afterwards(tmp_path: Path) -> None:
    platform, pause = WhatsApp(), Pause()
    ann, agent = platform.person("Ann"), ScriptedAgent([pause, "one"], "the rest")
    dm = platform.dm(ann)
    async with running(tmp_path, platform, agent):
        ann.says("first", dm)
        await pause.reached()
        ann.says("second", dm)
        ann.says("third", dm)
        await platform.settles()
        pause.over()
        await dm.reads("the rest")
    assert [said(work) for work in agent.works] == ["first", "second\nthird"]


async def test_stop_ends_ones_own_turn_and_keeps_what_was_said(tmp_path: Path) -> None:
    platform, pause = WhatsApp(), Pause()
    ann, agent = platform.person("Ann"), ScriptedAgent(["half of it", pause, " and the rest"], "next")
    dm = platform.dm(ann)
    async with running(tmp_path, platform, agent) as gateway:
        ann.says("go on", dm)
        await pause.reached()
        ann.says("/stop", dm)
        await dm.reads("half of it\n\n(Stopped.)")
        ann.says("and now?", dm)
        await dm.reads("next")
        session = (await gateway.store.sessions(await gateway.store.person(ann.identity)))[0]
        texts = [(entry.author.role, entry.text) for entry in await gateway.store.path(session.id)]
    assert texts[1:4] == [(Role.PERSON, "go on"), (Role.AGENT, "half of it"), (Role.GATEWAY, "(Stopped.)")]


async def test_stop_ends_ones_own_turn_also_in_a_session_that_one_has_left(tmp_path: Path) -> None:
    platform, pause = WhatsApp(), Pause()
    ann, bob = platform.person("Ann"), platform.person("Bob")
    agent = ScriptedAgent(["half of it", pause, " and the rest"], "next")
    dm = platform.dm(ann)
    async with running(tmp_path, platform, agent):
        ann.says("go on", dm)
        await pause.reached()
        ann.says("/new", dm)
        bob.says("/new", platform.dm(bob))
        bob.says("/stop", platform.dm(bob))
        await platform.dm(bob).reads("Nothing of yours is running.")
        ann.says("/stop", dm)
        await dm.reads("half of it\n\n(Stopped.)\n\n(This is from the session before.)")
        ann.says("/stop", dm)
        await dm.reads("Nothing of yours is running.")


async def test_nobody_stops_anothers_turn(tmp_path: Path) -> None:
    platform, pause = Telegram(), Pause()
    ann, bob = platform.person("Ann"), platform.person("Bob")
    agent = ScriptedAgent([pause, "all of it"])
    forum = platform.group()
    thread = ann.opens_thread("Talk", forum)
    async with running(tmp_path, platform, agent):
        ann.says("go on", thread, to=To.AGENT)
        await pause.reached()
        bob.says("/stop", thread)
        await thread.reads("Nothing of yours is running.")
        pause.over()
        await thread.reads("all of it")


async def test_interrupt_ends_the_speakers_turn_and_answers_what_they_said(tmp_path: Path) -> None:
    platform, pause = WhatsApp(), Pause()
    ann, agent = platform.person("Ann"), ScriptedAgent(["wrong way", pause], "right way")
    dm = platform.dm(ann)
    async with running(tmp_path, platform, agent, Busy.INTERRUPT):
        ann.says("go left", dm)
        await pause.reached()
        ann.says("no, right", dm)
        await dm.reads("right way")
    assert dm.replies == ["wrong way\n\n(Stopped.)", "right way"]


async def test_steer_takes_what_was_said_meanwhile_into_the_running_turn(tmp_path: Path) -> None:
    platform, pause = WhatsApp(), Pause()
    ann, agent = platform.person("Ann"), SteeredAgent([pause, "left, then right"])
    dm = platform.dm(ann)
    async with running(tmp_path, platform, agent, Busy.STEER) as gateway:
        ann.says("go left", dm)
        await pause.reached()
        ann.says("then right", dm)
        await agent.told()
        pause.over()
        await dm.reads("left, then right")
        await platform.settles()
        session = (await gateway.store.sessions(await gateway.store.person(ann.identity)))[0]
        texts = [entry.text for entry in await gateway.store.path(session.id) if entry.text]
    assert len(agent.works) == 1
    assert texts == ["go left", "then right", "left, then right"]


@pytest.mark.parametrize("busy", [Busy.STEER, Busy.INTERRUPT])
async def test_what_another_says_meanwhile_neither_steers_nor_interrupts(tmp_path: Path, busy: Busy) -> None:
    platform, pause = Telegram(), Pause()
    ann, bob = platform.person("Ann"), platform.person("Bob")
    agent = SteeredAgent([pause, "left"], "right")
    thread = ann.opens_thread("Talk", platform.group())
    async with running(tmp_path, platform, agent, busy):
        ann.says("go left", thread, to=To.AGENT)
        await pause.reached()
        for text in ("no, right", "I mean it"):
            bob.says(text, thread, to=To.AGENT)
            await platform.settles()
        pause.over()
        await thread.reads("right")
    assert thread.replies == ["left", "right"]
    assert agent.steered == []


async def test_steer_that_comes_too_late_is_a_turn_of_its_own(tmp_path: Path) -> None:
    platform, pause = WhatsApp(), Pause()
    ann, agent = platform.person("Ann"), SteeredAgent([pause, "left"], "right")
    agent.takes_more = False
    dm = platform.dm(ann)
    async with running(tmp_path, platform, agent, Busy.STEER):
        ann.says("go left", dm)
        await pause.reached()
        ann.says("then right", dm)
        await platform.settles()
        pause.over()
        await dm.reads("right")
    assert [said(work) for work in agent.works] == ["go left", "then right"]


async def test_what_one_says_in_another_place_is_answered_there_and_steers_nothing(tmp_path: Path) -> None:
    platform, pause = WhatsApp(), Pause()
    ann, agent = platform.person("Ann"), SteeredAgent("hello", [pause, "left, left"], "right")
    dm, lobby = platform.dm(ann), platform.group()
    async with running(tmp_path, platform, agent, Busy.STEER) as gateway:
        ann.says("hi", dm)
        await dm.reads("hello")
        store, person = gateway.store, await gateway.store.person(ann.identity)
        session = (await store.sessions(person))[0]
        await store.move(Resume(await store.lane(lobby.place, person), session.id, consent=Consent.GIVEN), person)
        ann.says("go left", dm)
        await pause.reached()
        ann.says("then right", lobby, to=To.AGENT)
        ann.says("and left again", dm)
        assert [plain_text(draft.parts) for draft in await agent.told()] == ["and left again"]
        pause.over()
        await lobby.reads("right")
    assert (dm.replies, lobby.replies) == (["hello", "left, left"], ["right"])


async def test_what_nobody_said_isnt_interrupted(tmp_path: Path) -> None:
    platform, pause = WhatsApp(), Pause()
    ann, agent = platform.person("Ann"), ScriptedAgent("hello", [pause, "they greeted"], "right way")
    dm = platform.dm(ann)
    async with running(tmp_path, platform, agent, Busy.INTERRUPT):
        ann.says("hi", dm)
        await dm.reads("hello")
        ann.says("/compress", dm)
        await pause.reached()
        for text in ("which way?", "quick"):
            ann.says(text, dm)
            await platform.settles()
        pause.over()
        await dm.reads("right way")
    assert dm.replies[1].startswith("A summary stands for 2 messages now.")


async def test_an_edit_of_what_still_waits_replaces_it(tmp_path: Path) -> None:
    platform, pause = Telegram(), Pause()
    ann, agent = platform.person("Ann"), ScriptedAgent([pause, "one"], "two")
    dm = platform.dm(ann)
    async with running(tmp_path, platform, agent):
        ann.says("first", dm)
        await pause.reached()
        message = ann.says("secnod", dm)
        await platform.settles()
        ann.edits(message, "second")
        await platform.settles()
        pause.over()
        await dm.reads("two")
    assert said(agent.works[1]) == "second"


async def test_a_gateway_that_stops_hands_its_running_turn_over(tmp_path: Path) -> None:
    platform, pause = WhatsApp(), Pause()
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    async with running(tmp_path, platform, ScriptedAgent([pause])):
        ann.says("hello", dm)
        await pause.reached()
    async with running(tmp_path, platform, EchoAgent()):
        await dm.reads("hello")
    assert dm.replies == ["hello"]


async def test_one_replica_holds_a_connection_and_another_takes_it_over(tmp_path: Path) -> None:
    platform = Matrix()
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    async with running(tmp_path, platform, EchoAgent()):
        async with running(tmp_path, platform, EchoAgent()):
            ann.says("hello", dm)
            await dm.reads("hello")
        ann.says("again", dm)
        await dm.reads("again")
        await platform.settles()
    assert dm.replies == ["hello", "again"]


async def test_in_a_group_it_answers_only_what_is_meant_for_it(tmp_path: Path) -> None:
    platform = Telegram()
    ann = platform.person("Ann")
    group = platform.group()
    async with running(tmp_path, platform, EchoAgent(), mentions=Mentions.NEEDED):
        ann.says("not for you", group)
        ann.says("for you", group, to=To.AGENT)
        await group.reads("for you")
        await platform.settles()
    assert group.replies == ["for you"]


async def test_in_a_group_a_command_has_to_be_meant_for_it_too(tmp_path: Path) -> None:
    platform = Telegram()
    ann, group = platform.person("Ann"), platform.group()
    async with running(tmp_path, platform, EchoAgent(), mentions=Mentions.NEEDED):
        ann.says("hello", group, to=To.AGENT)
        await group.reads("hello")
        ann.says("/title Cats", group)
        ann.says("/nonsense", group)
        ann.says("/title Dogs", group, to=To.AGENT)
        await group.reads("This session is called Dogs.")
        await platform.settles()
    assert group.replies == ["hello", "This session is called Dogs."]


async def test_an_edit_of_what_was_meant_for_it_is_too_though_it_does_not_say_so_again(tmp_path: Path) -> None:
    platform, pause = Telegram(), Pause()
    ann, group, agent = platform.person("Ann"), platform.group(), ScriptedAgent([pause, "one"], "two")
    async with running(tmp_path, platform, agent, mentions=Mentions.NEEDED):
        ann.says("first", group, to=To.AGENT)
        await pause.reached()
        ann.edits(ann.says("teh", group, to=To.AGENT), "the")
        ann.edits(ann.says("not for you", group), "nor is this")
        await platform.settles()
        pause.over()
        await group.reads("two")
    assert [said(work) for work in agent.works] == ["first", "the"]


async def test_a_long_answer_comes_in_pieces_that_fit_each_as_soon_as_the_last_was_sent(tmp_path: Path) -> None:
    platform = Telegram()
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    long = "\n\n".join(f"Paragraph {n}. " + "word " * 80 for n in range(40))
    async with running(tmp_path, platform, ScriptedAgent(long), poll=3600):
        ann.says("tell me all", dm)
        await platform.changes.until(
            lambda: True if "".join("".join(dm.replies).split()) == "".join(long.split()) else None,
            lambda: f"never read all of it: {dm.replies!r}",
        )
    assert len(dm.replies) > 3
    assert all(len(reply) <= 4096 for reply in dm.replies)


async def test_what_cant_be_understood_is_kept_and_acknowledged(tmp_path: Path) -> None:
    platform = WhatsApp()
    address = Address(platform.name, platform.account, chat="1")
    broken = Arrival(
        Place(address), "m1", Speaker(Identity(platform.name, platform.account, "1")), (Text("a\0b"),), 0.0
    )
    async with running(tmp_path, platform, EchoAgent()) as gateway:
        assert await gateway.accept(Letter(platform.name, platform.account, "garbage", "not JSON")) is Accepted.DEAD
        assert await gateway.accept(broken) is Accepted.DEAD
        assert gateway.problems() == []


def test_one_person_has_a_quarter_of_the_slots_and_always_one() -> None:
    assert [Slots(count, replica.Pause(1.0)).room.share for count in (1, 4, 8)] == [1, 1, 2]


def test_the_last_slots_are_the_hosts() -> None:
    slots = Slots(8, replica.Pause(1.0))
    slots.host = "host"
    for taken, (free, only) in enumerate([(6, ""), (5, ""), (4, ""), (3, ""), (2, ""), (1, ""), (2, "host")]):
        assert (slots.open, slots.room.only, slots.room.taken.get("ann", 0)) == (free, only, taken)
        slots.take("ann")
    slots.take("host")
    assert (slots.open, slots.room.taken) == (0, {"ann": 7, "host": 1})
    for _ in range(7):
        slots.leave("ann")
    assert (slots.free, slots.open, slots.room.taken) == (7, 5, {"host": 1})


async def test_a_gateway_that_has_stopped_is_told_of_nothing_more(tmp_path: Path) -> None:
    async with await open_store(tmp_path / "segue.db") as store:
        assert isinstance(store.driver, Sqlite)
        async with Gateway(store, EchoAgent(), [WhatsApp().adapter()]):
            assert store.driver._hints._listeners
        assert not store.driver._hints._listeners


async def test_a_turn_that_waits_for_another_session_holds_no_slot(tmp_path: Path) -> None:
    platform, pause = WhatsApp(), Pause()
    ann, bob = platform.person("Ann"), platform.person("Bob")
    agent = ScriptedAgent([pause, "ann's"], "bob's")
    async with running(tmp_path, platform, agent) as gateway:
        slots = gateway._turns
        slots._slots = Slots(1, slots.wake)
        ann.says("wait", platform.dm(ann))
        await pause.reached()
        [live] = slots._live.values()
        async with slots.waiting(live.run):
            bob.says("hello", platform.dm(bob))
            await platform.dm(bob).reads("bob's")
        pause.over()
        await platform.dm(ann).reads("ann's")


async def test_a_session_is_handed_over_however_long_the_store_takes(postgres_dsn: str) -> None:
    platform, pause = WhatsApp(), Pause()
    ann, agent = platform.person("Ann"), ScriptedAgent([pause, "first"], "again")
    async with gateway_on(postgres_dsn, agent, platform, grace=0.1) as gateway:
        ann.says("hello", platform.dm(ann))
        await pause.reached()
        [live] = gateway._turns._live.values()
        beside = await asyncpg.connect(postgres_dsn)
        async with beside.transaction():
            await beside.execute("select from segue.sessions for update")
            handing_over = asyncio.create_task(gateway._turns._answering.hand_over(live))
            await asyncio.sleep(1.2)
        await beside.close()
        await handing_over
        await platform.dm(ann).reads("again")
        pause.over()


async def test_a_turn_that_is_cancelled_ends_though_its_store_is_closed(tmp_path: Path) -> None:
    platform, pause = WhatsApp(), Pause()
    ann = platform.person("Ann")
    async with running(tmp_path, platform, ScriptedAgent([pause, "first"])) as gateway:
        ann.says("hello", platform.dm(ann))
        await pause.reached()
        [task] = gateway._turns._tasks
        await gateway.store.close()
        task.cancel()
        async with asyncio.timeout(60):
            await asyncio.wait([task])


async def test_a_bug_in_an_adapter_delays_its_message_and_nothing_else(tmp_path: Path) -> None:
    platform = WhatsApp()
    ann = platform.person("Ann")
    adapter = platform.adapter()
    send = adapter.send
    failed: list[Delivery] = []

    async def breaks_once(delivery: Delivery) -> str:
        if not failed:
            failed.append(delivery)
            raise KeyError("a bug")
        return await send(delivery)

    adapter.send = breaks_once  # type: ignore[method-assign]  # the bug
    async with (
        gateway_on(tmp_path, EchoAgent(), adapter, poll=0.05) as gateway,
        platform.reaching(gateway.webhooks()),
    ):
        ann.says("hello", platform.dm(ann))
        await platform.dm(ann).reads_some()
        assert gateway.problems() == []
    assert platform.dm(ann).replies == ["(You may have seen this already.)\n\nhello"]


async def test_what_waited_all_night_for_a_gateway_waits_for_its_platform_no_longer_than_anything(
    tmp_path: Path,
) -> None:
    platform = WhatsApp()
    dm = platform.dm(platform.person("Ann"))
    async with await open_store(tmp_path / "segue.db") as store:
        yesterday = time.time() - 30_000
        await store.driver.write(deliveries.notify, dm.address, "good morning", "key", (), yesterday)
    platform.misbehaves(Fault.UNREACHABLE, times=2)
    async with running(tmp_path, platform, EchoAgent()):
        await dm.reads("good morning")


async def test_a_gateway_without_a_store_says_what_to_do() -> None:
    async def reply(text: str) -> str:
        return text

    with pytest.raises(Invalid, match=r"it has no store.*segue serve"):
        await Gateway(agent=reply).__aenter__()


async def test_calls_that_prove_nothing_are_in_the_audit_once_an_hour_with_their_number(tmp_path: Path) -> None:
    async with gateway_on(tmp_path, EchoAgent()) as gateway:
        for calls in (1, 200, 50):
            gateway.audit_unproven("/link", calls)

        noted = list[tuple[str, int]]()
        async with asyncio.timeout(PATIENCE):
            while sum(count for _, count in noted) < 251:
                found = await gateway.store.driver.read(audit.newest, 10)
                noted = [(row.fact.detail, row.count) for row in found]
        assert noted == [("unproven calls to /link", 251)]
