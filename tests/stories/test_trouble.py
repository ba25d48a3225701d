"""Platforms, agents and disks misbehave: nothing is lost, nothing doubled, and people are told the truth."""

import asyncio
from pathlib import Path

import pytest

from segue.core.messages import Sending
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


async def test_a_message_that_kills_the_process_is_given_up_and_its_person_is_told(stage: Stage) -> None:
    town = stage.town
    deaths = 0
    heard = asyncio.create_task(town.hears("ann", "I stopped trying"))
    sent = asyncio.create_task(town.say("ann", "ann-message-1", text="please die"))
    while not heard.done():
        gateway = await asyncio.to_thread(start, stage.plan(lease=0.2, deaths=5))
        dead = asyncio.create_task(asyncio.to_thread(gateway.join))
        await asyncio.wait([heard, dead], return_when=asyncio.FIRST_COMPLETED)
        deaths += dead.done()
        await asyncio.to_thread(kill, gateway)
        await dead
        assert deaths <= 20
    await sent
    assert deaths >= 5
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
