"""Deliveries: in order per address, never two of one address at once, receipts and dead letters."""

import asyncio

import pytest

from segue.changes.eras import begin
from segue.changes.exchange import deliveries, replicas, turns
from segue.changes.exchange.deliveries import Attempt
from segue.core.contracts.adapters import StatusReport
from segue.core.contracts.wakes import Topic
from segue.core.lanes import Address
from segue.core.messages import File, Outgoing, SendStatus
from segue.core.turns import Finish, Reply, Run
from segue.errors import Fenced, Invalid
from tests.changes.world import World, answer, private

HERE, THERE = Address("telegram", "bot", chat="here"), Address("telegram", "bot", chat="there")


async def send(world: World, address: Address, *texts: str) -> None:
    for text in texts:
        await world.store.driver.write(deliveries.notify, address, text, world.ids(), (), world.clock())


async def take(world: World, me: str = "r", count: int = 10, account: str = "bot") -> list[Outgoing]:
    taken = await world.store.driver.write(deliveries.outgoing, me, "telegram", account, count)
    return sorted(taken, key=lambda out: out.id)


async def is_sent(world: World, out: Outgoing, message: str = "m") -> None:
    await world.store.driver.write(deliveries.sent, out, message, world.clock())


def texts(taken: list[Outgoing]) -> list[str]:
    return [out.delivery.text for out in taken]


async def running(world: World, text: str = "hello", user: str = "ann") -> Run:
    queued = await world.hear(user, text, private("here"), me="r")
    assert queued.run is not None
    return queued.run


async def test_one_of_each_address_is_taken_in_order(world: World) -> None:
    await send(world, HERE, "1", "2")
    await send(world, THERE, "a", "b")
    first = await take(world)
    assert texts(first) == ["1", "a"]
    assert await take(world, "r2") == []
    await is_sent(world, first[1])
    assert texts(await take(world)) == ["b"]
    await is_sent(world, first[0])
    assert texts(await take(world)) == ["2"]


async def test_no_more_are_taken_than_asked_for_and_no_other_accounts(world: World) -> None:
    for n in range(5):
        await send(world, Address("telegram", "bot", chat=str(n)), str(n))
    await send(world, Address("telegram", "other", chat="x"), "other")
    assert len(await take(world, count=2)) == 2
    assert len(await take(world)) == 3
    assert texts(await take(world, account="other")) == ["other"]


async def test_what_cannot_be_sent_now_keeps_its_place(world: World) -> None:
    await send(world, HERE, "1", "2")
    [out] = await take(world)
    assert (out.delivery.attempt, out.delivery.doubtful) == (1, 0)
    await world.store.driver.write(deliveries.unsent, out, Attempt.UNSURE, 1000.0, "timeout")
    assert await take(world) == []
    await world.raw("update deliveries set due = 0 where text = '1'")
    [again] = await take(world)
    assert (again.delivery.text, again.delivery.attempt, again.delivery.doubtful) == ("1", 2, 1)
    assert again.delivery.key == out.delivery.key
    await world.store.driver.write(deliveries.unsent, again, Attempt.REFUSED, 0.0, "429")
    [third] = await take(world)
    assert (third.delivery.attempt, third.delivery.doubtful) == (3, 1)
    await is_sent(world, third)
    assert texts(await take(world)) == ["2"]


async def test_what_can_never_be_sent_lets_the_next_pass(world: World) -> None:
    await send(world, HERE, "1", "2")
    [out] = await take(world)
    await world.store.driver.write(deliveries.give_up, out, "403", world.clock())
    assert texts(await take(world)) == ["2"]
    [dead] = await world.store.driver.read(deliveries.dead, 10)
    assert (dead.id, dead.address, dead.session, dead.text, dead.error, dead.at) == (
        *(out.id, HERE, None),
        *("1", "403", world.clock()),
    )


async def test_a_dead_letter_that_is_tried_again_waits_for_what_is_being_sent(world: World) -> None:
    await send(world, HERE, "1", "2")
    [out] = await take(world)
    await world.store.driver.write(deliveries.give_up, out, "403", world.clock())
    [second] = await take(world)
    heard = asyncio.Queue[str]()
    stop = world.store.driver.listen(heard.put_nowait)
    await world.store.driver.write(deliveries.retry, out.id)
    async with asyncio.timeout(60):
        assert await heard.get() == Topic.DELIVERIES, "it is sent at once, not at the next look"
    stop()
    with pytest.raises(Invalid, match=f"delivery: {out.id} is no dead letter"):
        await world.store.driver.write(deliveries.retry, out.id)
    with pytest.raises(Invalid, match=f"out-{out.id} is no dead letter"):
        await world.store.driver.read(deliveries.dead_one, out.id)
    assert await take(world) == []
    await is_sent(world, second)
    assert texts(await take(world)) == ["1"]
    assert await world.store.driver.read(deliveries.dead, 10) == []


async def test_who_lost_a_delivery_cannot_say_what_became_of_it(world: World) -> None:
    await send(world, HERE, "1")
    [out] = await take(world, "dead")
    await world.store.driver.write(replicas.join, "r", 60.0)
    await world.store.driver.write(replicas.beat, "r", 60.0)
    [taken] = await take(world, "r")
    assert taken.delivery.doubtful == 1
    driver = world.store.driver
    late = Outgoing(taken.id, "r", out.delivery, out.waited)  # the same replica, an earlier attempt
    for lost in (out, late):
        with pytest.raises(Fenced):
            await driver.write(deliveries.sent, lost, "m", world.clock())
        with pytest.raises(Fenced):
            await driver.write(deliveries.unsent, lost, Attempt.UNSURE, 0.0, "x")
        with pytest.raises(Fenced):
            await driver.write(deliveries.give_up, lost, "x", world.clock())
    await is_sent(world, taken)
    with pytest.raises(Fenced):
        await is_sent(world, taken)


async def test_a_receipt_tells_the_session_and_entry_behind_a_message(world: World) -> None:
    run = await running(world)
    await world.store.driver.write(turns.finish, run.held, answer(run, "one", "two"), world.clock())
    for message in ("m-1", "m-2"):
        [out] = await take(world)
        await is_sent(world, out, message)
    receipt = await world.store.receipt(HERE, "m-2")
    assert receipt is not None
    assert (receipt.address, receipt.message, receipt.session, receipt.entry, receipt.at) == (
        *(HERE, "m-2", run.held.session, 3),
        world.clock(),
    )
    assert await world.store.receipt(THERE, "m-2") is None
    await send(world, HERE, "notice")
    [out] = await take(world)
    await is_sent(world, out, "m-3")
    assert await world.store.receipt(HERE, "m-3") is None  # it is in no transcript


async def test_a_streamed_message_holds_its_place_until_it_is_there(world: World) -> None:
    driver = world.store.driver
    run = await running(world)
    stream = await driver.write(deliveries.open_stream, run.held, run.name, HERE, ("m1",), world.clock())
    assert stream is not None
    await send(world, HERE, "after")
    assert await take(world) == []
    await driver.write(deliveries.placed, stream, "r", "m-9")
    # Whoever types a command meanwhile needn't wait for the end of a long answer.
    [out] = await take(world)
    assert out.delivery.text == "after"
    await is_sent(world, out, "m-10")
    await send(world, HERE, "last")
    await driver.write(turns.finish, run.held, answer(run, "final"), world.clock())
    [out] = await take(world)
    assert (out.delivery.text, out.delivery.message, out.delivery.key) == ("final", "m-9", stream.key)
    await is_sent(world, out, "m-9")
    assert texts(await take(world)) == ["last"]


async def test_nothing_is_streamed_past_what_waits(world: World) -> None:
    run = await running(world)
    await send(world, HERE, "first")
    driver = world.store.driver
    assert await driver.write(deliveries.open_stream, run.held, run.name, HERE, (), world.clock()) is None
    [out] = await take(world)
    await is_sent(world, out)
    assert await driver.write(deliveries.open_stream, run.held, run.name, HERE, (), world.clock()) is not None


async def test_the_next_attempt_streams_into_the_same_message(world: World) -> None:
    driver = world.store.driver
    run = await running(world)
    stream = await driver.write(deliveries.open_stream, run.held, run.name, HERE, (), world.clock())
    assert stream is not None
    await driver.write(deliveries.placed, stream, "r", "m-9")
    await driver.write(turns.let_go, run.held, 1, 0.0)
    [again] = await driver.write(turns.claim, "r2", 1)
    with pytest.raises(Fenced):
        await driver.write(deliveries.open_stream, run.held, run.name, HERE, (), world.clock())
    same = await driver.write(deliveries.open_stream, again.held, again.name, HERE, (), world.clock())
    assert same is not None
    assert (same.key, same.message) == (stream.key, "m-9")
    with pytest.raises(Fenced):
        await driver.write(deliveries.placed, stream, "r", "m-10")
    await driver.write(turns.finish, again.held, answer(again, "once"), world.clock())
    assert texts(await take(world)) == ["once"]
    assert await world.count("deliveries") == 1


async def test_a_stream_that_gets_no_answer_blocks_nobody(world: World) -> None:
    driver = world.store.driver
    run = await running(world)
    await driver.write(deliveries.open_stream, run.held, run.name, HERE, (), world.clock())
    await driver.write(turns.let_go, run.held, 1, 0.0)
    [again] = await driver.write(turns.claim, "r2", 1)
    # Whoever finishes it need not know that the first attempt streamed.
    await driver.write(turns.finish, again.held, Finish((1,), ()), world.clock())
    await send(world, HERE, "next")
    assert texts(await take(world)) == ["next"]


async def test_two_sessions_do_not_stream_into_one_address_at_once(world: World) -> None:
    driver = world.store.driver
    one = await running(world)
    bob = await world.person("bob")
    await world.renew(await world.dm(bob, "elsewhere"), bob)
    queued = await world.hear("bob", "hello", private("elsewhere"), me="r")
    assert queued.run is not None
    two = queued.run
    assert await driver.write(deliveries.open_stream, one.held, one.name, HERE, (), world.clock()) is not None
    assert await driver.write(deliveries.open_stream, two.held, two.name, HERE, (), world.clock()) is None
    done = Finish((1,), answer(two, "x").drafts, (Reply(HERE, "x", 1),))
    await driver.write(turns.finish, two.held, done, world.clock())
    assert await take(world) == []
    await driver.write(turns.finish, one.held, answer(one, "y"), world.clock())
    assert texts(await take(world)) == ["y"]


async def test_the_same_notice_is_said_once(world: World) -> None:
    for text in ("hello", "hello again"):
        await world.store.driver.write(deliveries.notify, HERE, text, "key", ("m1",), world.clock())
    [out] = await take(world)
    assert (out.delivery.text, out.delivery.answers, out.delivery.session) == ("hello", ("m1",), "")


async def test_choices_and_files_go_along(world: World) -> None:
    file = File("cats.md", "text/markdown", "files/ab/cd", 3)
    said = "Shall I?", "notice", ("m1",), world.clock(), ("/yes", "/no"), file
    await world.store.driver.write(deliveries.notify, HERE, *said)
    [out] = await take(world)
    assert (out.delivery.choices, out.delivery.file, out.delivery.answers) == (("/yes", "/no"), file, ("m1",))


async def told(world: World, fate: SendStatus, message: str = "wamid.1", key: str = "", why: str = "") -> bool:
    report = StatusReport("telegram", "bot", message, fate, why, key)
    return await world.store.driver.write(deliveries.report, report, world.clock())


async def is_taken(world: World, out: Outgoing, seconds: float = 60.0) -> None:
    await world.store.driver.write(deliveries.taken, out, "wamid.1", seconds)


async def test_what_the_platform_took_keeps_its_place_until_it_tells(world: World) -> None:
    await send(world, HERE, "1", "2")
    [out] = await take(world)
    await is_taken(world, out)
    assert await take(world) == []
    assert not await told(world, SendStatus.SENT, "another's")
    assert await told(world, SendStatus.SENT)
    [again] = await take(world)
    assert (again.delivery.text, again.delivery.message, again.report) == ("1", "wamid.1", SendStatus.SENT)
    await is_sent(world, again, again.delivery.message)
    assert not await told(world, SendStatus.SENT), "it is no news any more"
    assert texts(await take(world)) == ["2"]


async def test_word_that_comes_before_its_message_is_recorded_is_known_by_its_key(world: World) -> None:
    world.changed = {"replicas"}
    await world.store.driver.write(begin, "era")
    await send(world, HERE, "1")
    [out] = await take(world)
    assert not await told(world, SendStatus.SENT, key=out.delivery.key.removeprefix("era.")), "that was another era"
    assert await told(world, SendStatus.SENT, key=out.delivery.key)
    await is_taken(world, out)
    [again] = await take(world)
    assert (again.report, again.delivery.message) == (SendStatus.SENT, "wamid.1")


async def test_word_of_a_message_whose_sender_died_is_heeded(world: World) -> None:
    await send(world, HERE, "1")
    [out] = await take(world, "dead")
    assert await told(world, SendStatus.SENT, key=out.delivery.key)
    await world.store.driver.write(replicas.leave, "dead")
    [again] = await take(world)
    assert again.report == SendStatus.SENT


async def test_what_was_given_up_is_sent_after_all_if_the_platform_says_so(world: World) -> None:
    await send(world, HERE, "1")
    [out] = await take(world)
    await is_taken(world, out, 0.0)
    [again] = await take(world)
    assert again.report == SendStatus.TAKEN
    await world.store.driver.write(deliveries.give_up, again, "silence", world.clock())
    assert not await told(world, SendStatus.NEVER, why="not paid"), "it is given up already"
    assert await told(world, SendStatus.SENT)
    [late] = await take(world)
    await is_sent(world, late, late.delivery.message)
    assert await world.store.driver.read(deliveries.dead, 10) == []


async def test_what_was_never_sent_after_all_is_a_dead_letter(world: World) -> None:
    await send(world, HERE, "1")
    [out] = await take(world)
    await is_sent(world, out, "wamid.1")
    assert await told(world, SendStatus.NEVER, why="not paid")
    [dead] = await world.store.driver.read(deliveries.dead, 10)
    assert (dead.text, dead.error) == ("1", "not paid")
    await world.store.driver.write(deliveries.retry, dead.id)
    [again] = await take(world)
    assert again.report == "", "it would be recorded, not sent"
