"""What goes out: a platform that won't take it doesn't hold up what is said after it."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from segue import Store, open_store
from segue.changes.exchange import deliveries
from segue.core.contracts.probes import Point
from segue.core.lanes import Address
from segue.core.settings import AccountSettings, Streams
from segue.runtime.replica import Replica
from segue.runtime.retrying import Patient
from segue.testing import EchoAgent, HandClock, Matrix, Pause, ScriptedAgent, Slack, Telegram, To, WhatsApp
from segue.testing.contracts.base import a_delivery
from segue.testing.faults import Call, Fault, RateLimit, Slow
from segue.testing.ledger import Message
from segue.testing.personas import Persona
from segue.testing.waits import PATIENCE
from tests.full import full
from tests.in_process import gateway_on
from tests.runtime.telemetry.test_metrics import samples


async def recorded(store: Store, address: Address, message: str) -> None:
    """Wait until it is written down that a message was sent."""
    async with asyncio.timeout(90):
        while await store.receipt(address, message) is None:  # noqa: ASYNC110 -- nobody tells
            await asyncio.sleep(0.02)


async def test_a_platform_that_asks_for_endless_patience_is_tried_once_more_and_given_up(tmp_path: Path) -> None:
    platform = WhatsApp()
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    platform.misbehaves(RateLimit(1e15), Call.SEND, None)
    async with gateway_on(tmp_path, EchoAgent(), platform, poll=0.05, give_up_after=0.2) as gateway:
        ann.says("hello", dm)
        await platform.called(Call.SEND, 2)
        platform.recovers()
        ann.says("again", dm)
        await dm.reads("again")
        dead = await gateway.store.driver.read(deliveries.dead, 10)
        counted = [dict(labels) for name, labels in samples(gateway.metrics) if name == "segue_dead_letters_total"]
    assert [letter.text for letter in dead] == ["hello"]
    assert [(each["platform"], each["account"]) for each in counted] == [(platform.name, platform.account)]


async def test_what_was_never_sent_before_is_not_looked_for(tmp_path: Path) -> None:
    platform = Slack()
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    async with gateway_on(tmp_path, EchoAgent(), platform):
        ann.says("hello", dm, to=To.AGENT)
        await dm.reads("hello")
    assert platform.faults.calls[Call.SEND] == 1
    assert platform.faults.calls[Call.FIND] == 0


async def test_a_gateway_that_stops_lets_a_call_under_way_finish(tmp_path: Path) -> None:
    platform = WhatsApp()
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    platform.misbehaves(Slow(1.0), Call.SEND)
    async with gateway_on(tmp_path, EchoAgent(), platform):
        ann.says("hello", dm)
        await platform.called(Call.SEND, 1)
    async with await open_store(tmp_path / "segue.db") as store:
        assert await store.receipt(dm.address, (await dm.reads("hello")).id)


@pytest.mark.parametrize(
    "persona", [full(Matrix), full(Slack), full(Telegram), WhatsApp], ids=["keyed", "read back", "edit", "blind"]
)
async def test_a_platform_slower_than_the_lease_is_called_once_and_served(
    tmp_path: Path, persona: type[Persona]
) -> None:
    platform = persona()
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    platform.misbehaves(Slow(2.5), Call.SEND, None)
    async with gateway_on(tmp_path, EchoAgent(), platform, poll=0.05, lease=2.0) as gateway:
        ann.says("hello", dm, to=To.AGENT)
        await recorded(gateway.store, dm.address, (await dm.reads("hello")).id)
    assert dm.replies == ["hello"]
    assert platform.faults.calls[Call.SEND] == 1


@pytest.mark.parametrize("streams", Streams)
@pytest.mark.parametrize("persona", [Slack, Telegram], ids=["read back", "edit"])
async def test_a_placeholder_whose_id_was_lost_becomes_the_answer(
    tmp_path: Path, persona: type[Persona], streams: Streams
) -> None:
    platform = persona()
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    account, pause = AccountSettings(public=True, streams=streams), Pause()
    agent = ScriptedAgent(["one"], ["two and", pause, " three"])
    # A text is shown as it grows only while the lease lasts for long: no busy machine makes this one short.
    async with gateway_on(tmp_path, agent, platform, account=account, poll=0.05, lease=60.0) as gateway:
        ann.says("hello", dm)
        await recorded(gateway.store, dm.address, (await dm.reads("one")).id)
        platform.misbehaves(Fault.TAKES_AND_BREAKS, Call.SEND)
        ann.says("again", dm)
        # The first call breaks off, be it that of the growing message or that of the whole one.
        await pause.reached()
        pause.over()
        await recorded(gateway.store, dm.address, (await dm.reads("two and three")).id)
    assert dm.replies == ["one", "two and three"], "no placeholder is left beside them"


async def test_a_placeholder_that_was_left_before_an_earlier_answer_is_not_taken_for_a_later_one(database: str) -> None:
    platform, pause = Telegram(), Pause()
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    account = AccountSettings(public=True, streams=Streams.WHOLE)
    ann.says("hello", dm)
    ann.says("again", dm)
    left = await platform.adapter().send(a_delivery(dm.address, "").placeholder)
    agent = ScriptedAgent(["one"], [pause, "two"])
    async with gateway_on(database, agent, platform, account=account, poll=0.05, lease=60.0) as gateway:
        await recorded(gateway.store, dm.address, (await dm.reads("one")).id)
        await pause.reached()
        platform.misbehaves(Fault.TAKES_AND_BREAKS, Call.SEND)
        pause.over()
        await recorded(gateway.store, dm.address, (await dm.reads("two")).id)
    ours = [message for message in dm.messages if not message.by]
    assert [message.text for message in ours if message.id != left] == ["one", "two"]
    assert ours[0].id == left, "it stays as it is"


async def test_a_call_ends_with_the_life_of_its_replica(tmp_path: Path) -> None:
    async with await open_store(tmp_path / "segue.db") as store:
        replica = Replica(Patient(store.driver), store._ids, 1.0)
        await replica.join()
        with contextlib.suppress(TimeoutError):
            async with replica.calling(3600.0):
                [call] = replica._calls
                assert (call.when() or 0.0) <= replica._until - 0.2, "no time to write down what became of it"
                await asyncio.Event().wait()
        alive = Replica(Patient(store.driver), store._ids, 60.0)
        await alive.join()
        async with alive.calling(3600.0):
            [call] = alive._calls
            before = call.when() or 0.0
            await alive._beat()
            assert (call.when() or 0.0) > before, "a beat makes it no longer"
        with pytest.raises(TimeoutError):
            async with alive.calling(0.0):
                await asyncio.Event().wait()


async def test_an_answer_whose_growing_message_was_deleted_comes_as_a_new_one(tmp_path: Path) -> None:
    platform, pause = Telegram(), Pause()
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    account = AccountSettings(public=True, streams=Streams.LIVE)
    agent = ScriptedAgent(["At first", pause, " and at last"])
    async with gateway_on(tmp_path, agent, platform, account=account, poll=0.05) as gateway:
        ann.says("hello", dm)
        growing = await dm.reads("At first")
        platform.ledger.remove(growing)
        pause.over()
        await dm.reads("At first and at last")
        dead = await gateway.store.driver.read(deliveries.dead, 10)
    assert dead == []


async def test_an_answer_whose_placeholder_was_deleted_at_once_comes_as_a_new_one(tmp_path: Path) -> None:
    platform = Telegram()
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    account = AccountSettings(public=True, streams=Streams.WHOLE)
    deleted = list[Message]()

    def deletes(point: Point) -> None:
        if point is Point.SEND_PLACED and not deleted:
            deleted.append(dm.messages[-1])
            platform.ledger.remove(deleted[0])

    async with gateway_on(tmp_path, EchoAgent(), platform, account=account, poll=0.05, probe=deletes) as gateway:
        ann.says("hello", dm)
        await dm.reads("hello")
        dead = await gateway.store.driver.read(deliveries.dead, 10)
    assert (len(deleted), dead) == (1, [])


async def test_a_turn_ends_while_its_growing_message_hangs_and_the_answer_comes_after_that(tmp_path: Path) -> None:
    platform, pause, finished = Telegram(), Pause(), asyncio.Event()
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    account = AccountSettings(public=True, streams=Streams.LIVE)
    agent = ScriptedAgent(["At first", pause, " and at last"])

    def look(point: Point) -> None:
        if point is Point.TURN_FINISHED:
            finished.set()

    async with gateway_on(tmp_path, agent, platform, account=account, poll=0.05, lease=60.0, probe=look):
        platform.misbehaves(Fault.HANGS, Call.EDIT)
        ann.says("hello", dm)
        await platform.called(Call.EDIT, 1)
        pause.over()
        async with asyncio.timeout(PATIENCE):
            await finished.wait()
        assert platform.faults.calls[Call.EDIT] == 1, "nothing else is sent there meanwhile"
        platform.recovers()
        await dm.reads("At first and at last")
    assert dm.replies == ["At first and at last"]


async def test_a_clock_that_leaps_ahead_makes_no_dead_letter_of_what_waits_to_be_sent_again(tmp_path: Path) -> None:
    platform, clock = WhatsApp(), HandClock(1_000_000_000.0)
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    platform.misbehaves(Fault.SERVER_ERROR, Call.SEND, None)
    async with gateway_on(tmp_path, EchoAgent(), platform, clock=clock, poll=0.05) as gateway:
        ann.says("hello", dm)
        await platform.called(Call.SEND, 1)
        clock.passes(9 * 86400.0)
        await platform.called(Call.SEND, 3)
        platform.recovers()
        await dm.reads("hello")
        assert await gateway.store.driver.read(deliveries.dead, 10) == []
