"""Platforms, agents and disks misbehave: nothing is lost, nothing doubled, and people are told the truth."""

import asyncio
from pathlib import Path

import pytest

from segue.core.messages import Sending
from segue.core.turns import SUSPECT
from tests.drills.gateways import start
from tests.drills.town import Fault, Town
from tests.forge import kill
from tests.stories.conftest import Stage


@pytest.mark.parametrize("fault", Fault)
async def test_a_platform_that_refuses_or_hangs_up_gets_the_answer_once(stage: Stage, fault: Fault) -> None:
    town = stage.town
    async with stage.gateway():
        town.faults = [fault, fault]
        await town.call("ann", "ann-message-1")
        await town.call("bob", "bob-message-1")
        await town.hears("ann", "I am ann-message-1")
        await town.hears("bob", "I am bob-message-1")
        await town.call("ann", "ann-message-2")
        await town.hears("ann", "I am ann-message-2")
    assert [len(town.texts("ann")), len(town.texts("bob"))] == [2, 1]


async def test_a_platform_without_keys_gets_a_placeholder_and_one_answer(stage: Stage) -> None:
    town = stage.town
    town.sending = Sending.EDIT
    async with stage.gateway(sending=Sending.EDIT):
        town.faults = [Fault.DROPS]
        await town.call("ann", "ann-message-1")
        await town.hears("ann", "I am ann-message-1")
    assert len(town.texts("ann")) == 1


async def test_a_hung_agent_holds_nobody_else_up_and_its_person_is_told(stage: Stage) -> None:
    town = stage.town
    async with stage.gateway(silence=0.3):
        await town.call("ann", "ann-message-1", text="please hang")
        await town.call("bob", "bob-message-1")
        await town.hears("bob", "I am bob-message-1")
        await town.hears("ann", "I stopped trying")
        await town.call("ann", "ann-message-2")
        await town.hears("ann", "I am ann-message-2")


async def test_an_agent_that_fails_is_tried_again_then_its_person_is_told(stage: Stage) -> None:
    town = stage.town
    async with stage.gateway():
        await town.call("ann", "ann-message-1", text="please raise")
        await town.hears("ann", "3 times")
        await town.call("ann", "ann-message-2")
        await town.hears("ann", "I am ann-message-2")


async def test_a_message_that_kills_the_process_is_given_up_and_harms_nobody_beside_it(
    stage: Stage, tmp_path: Path
) -> None:
    town, spy, deaths = stage.town, tmp_path / "spy", 0
    innocent = ("bob", "cat", "dan")
    plan = stage.plan(lease=1.0, deaths=5, spy=str(spy))
    heard = asyncio.create_task(town.hears("ann", "I stopped trying"))
    told = [asyncio.create_task(town.hears(chat, f"I am {chat}-message-1")) for chat in innocent]
    gateway = await asyncio.to_thread(start, plan)
    # They run when the first process dies: they linger until then, and the killer comes last.
    spy.touch()
    said = {chat: f"I am {chat}-message-1, and I linger" for chat in innocent}
    await asyncio.gather(*(town.say(chat, f"{chat}-message-1", text=said[chat]) for chat in innocent))
    async with asyncio.timeout(60):
        while not all(words in spy.read_text() for words in said.values()):  # noqa: ASYNC110 -- another process makes it so
            await asyncio.sleep(0.02)
    sent = asyncio.create_task(town.say("ann", "ann-message-1", text="please die"))
    over = asyncio.gather(heard, *told)
    while not over.done():
        dead = asyncio.ensure_future(asyncio.to_thread(gateway.join))
        ends: list[asyncio.Future[object]] = [dead, over]  # type: ignore[list-item]  # whatever they come to
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if dead.done():
            deaths += 1
            gateway = await asyncio.to_thread(start, plan)
    await asyncio.to_thread(kill, gateway)
    await sent
    assert SUSPECT < deaths <= plan.deaths
    # Each ran at a death, was tried again, and was answered once; nobody but the killer's person hears of trouble.
    attempts = spy.read_text()
    assert all(attempts.count(said[chat]) > 1 for chat in innocent)
    assert [len(town.texts(chat)) for chat in ("ann", *innocent)] == [1, 1, 1, 1]
    async with stage.gateway():
        await town.call("ann", "ann-message-2")
        await town.hears("ann", "I am ann-message-2")


async def test_a_full_disk_turns_messages_away_and_loses_none(tmp_path: Path) -> None:
    full = tmp_path / "full"
    stage = Stage(Town(1, seed=7), str(tmp_path / "segue.db"))
    town = stage.town
    async with town.platform(), stage.gateway(full=str(full)):
        await town.call("ann", "ann-message-1")
        await town.hears("ann", "I am ann-message-1")
        full.touch()
        refused = await town.call("ann", "ann-message-2")
        assert refused.status_code == 503
        assert "Retry-After" in refused.headers
        assert "room" in await town.health(503)
        full.unlink()
        await town.say("ann", "ann-message-2")
        await town.hears("ann", "I am ann-message-2")
        await town.health(200)
    assert len(town.texts("ann")) == 2
