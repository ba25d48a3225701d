"""Replicas: what a dead one held is free for the others, whenever it took it."""

from functools import partial

import pytest

from segue.changes.exchange import deliveries, questions, replicas, turns
from segue.changes.exchange.questions import Asking, Posed
from segue.changes.places.ways import Way
from segue.errors import Fenced, StoreConflict
from tests.changes.exchange.test_deliveries import HERE, send, take, texts
from tests.changes.world import Engine, World, answer


async def beat(world: World, me: str, seconds: float = 60.0) -> int:
    return (await world.store.driver.write(replicas.beat, me, seconds)).dead


async def join(world: World, me: str, seconds: float = 60.0) -> None:
    await world.store.driver.write(replicas.join, me, seconds)


async def test_a_replica_lives_while_it_beats(world: World) -> None:
    await join(world, "a")
    assert await beat(world, "a") == 0
    queued = await world.hear("ann", "hello", me="a")
    await join(world, "b")
    assert await beat(world, "b") == 0
    assert queued.run is not None
    await world.store.driver.write(turns.finish, queued.run.held, answer(queued.run, "hi"), world.clock())


async def test_what_a_dead_replica_held_is_free(world: World) -> None:
    await join(world, "dead", -1.0)
    await join(world, "alive")
    queued = await world.hear("ann", "hello", me="dead")
    await send(world, HERE, "1")
    assert len(await take(world, "dead")) == 1
    assert await world.store.driver.write(replicas.take_connection, "telegram", "bot", "dead") is not None
    assert await world.store.driver.write(turns.claim, "alive", 9) == []
    assert await world.store.driver.write(replicas.take_connection, "telegram", "bot", "alive") is None

    assert await beat(world, "alive") == 1
    assert await beat(world, "alive") == 0
    [run] = await world.store.driver.write(turns.claim, "alive", 9)
    assert run.held.session == queued.session
    assert (run.deaths, run.fails) == (1, 0)
    assert texts(await take(world, "alive")) == ["1"]
    assert await world.store.driver.write(replicas.take_connection, "telegram", "bot", "alive") is not None


async def test_what_a_frozen_transaction_keeps_locked_holds_nobody_up(world: World) -> None:
    await join(world, "frozen", -1.0)
    await join(world, "alive")
    locked = await world.hear("ann", "hello", me="frozen")
    free = await world.hear("bob", "hello", me="frozen")
    if world.engine is Engine.SQLITE:
        return  # There nobody writes beside another, and a transaction ends with its process or goes on with it.
    await world.raw("begin")
    await world.raw("select id from sessions where id = $1 for update", locked.session)
    assert await beat(world, "alive") == 1
    [run] = await world.store.driver.write(turns.claim, "alive", 9)
    assert run.held.session == free.session

    await world.raw("rollback")
    await beat(world, "alive")
    [run] = await world.store.driver.write(turns.claim, "alive", 9)
    assert run.held.session == locked.session


async def test_an_expired_replica_is_fenced_even_if_nobody_buried_it(world: World) -> None:
    await join(world, "late", -1.0)
    with pytest.raises(Fenced, match="replica late"):
        await beat(world, "late")
    with pytest.raises(Fenced):
        await beat(world, "never joined")


async def test_what_a_buried_replica_takes_later_is_freed_too(world: World) -> None:
    await join(world, "zombie", -1.0)
    await join(world, "alive")
    await beat(world, "alive")
    # It woke up and doesn't know yet that it is dead.
    accepted = await world.hear("ann", "hello", me="zombie")
    await world.hear("bob", "hello")
    [claimed] = await world.store.driver.write(turns.claim, "zombie", 9)
    await send(world, HERE, "1")
    assert len(await take(world, "zombie")) == 1
    assert await world.store.driver.write(replicas.take_connection, "telegram", "bot", "zombie") is not None

    await beat(world, "alive")
    runs = await world.store.driver.write(turns.claim, "alive", 9)
    assert {run.held.session for run in runs} == {accepted.session, claimed.held.session}
    assert texts(await take(world, "alive")) == ["1"]
    assert await world.store.driver.write(replicas.take_connection, "telegram", "bot", "alive") is not None


async def test_a_replica_that_goes_leaves_all_it_held_and_costs_nobody_a_life(world: World) -> None:
    await join(world, "a")
    await world.hear("ann", "hello", me="a")
    await send(world, HERE, "1")
    await take(world, "a")
    await world.store.driver.write(replicas.leave, "a")
    [run] = await world.store.driver.write(turns.claim, "b", 9)
    assert run.deaths == 0
    assert texts(await take(world, "b")) == ["1"]
    with pytest.raises(Fenced):
        await beat(world, "a")


async def test_an_id_is_used_by_one_replica(world: World) -> None:
    await join(world, "a")
    with pytest.raises(StoreConflict):
        await join(world, "a")


async def test_a_connection_has_one_holder_and_keeps_its_place(world: World) -> None:
    driver = world.store.driver
    await join(world, "a")
    await join(world, "b")
    first = await driver.write(replicas.take_connection, "telegram", "bot", "a")
    assert first is not None
    assert first.cursor == ""
    await driver.write(replicas.set_cursor, first, "offset 7")
    assert await driver.write(replicas.take_connection, "telegram", "bot", "b") is None
    await driver.write(replicas.leave_connection, "telegram", "bot", "b")  # not b's to leave
    assert await driver.write(replicas.take_connection, "telegram", "bot", "b") is None
    await driver.write(replicas.leave_connection, "telegram", "bot", "a")
    second = await driver.write(replicas.take_connection, "telegram", "bot", "b")
    assert second is not None
    assert second.cursor == "offset 7"
    with pytest.raises(Fenced, match=r"the connection to telegram\.bot"):
        await driver.write(replicas.set_cursor, first, "offset 8")


async def test_a_connection_that_was_made_again_is_fenced_from_its_former_self(world: World) -> None:
    driver = world.store.driver
    await join(world, "a")
    first = await driver.write(replicas.take_connection, "telegram", "bot", "a")
    again = await driver.write(replicas.take_connection, "telegram", "bot", "a")
    assert first is not None
    assert again is not None
    with pytest.raises(Fenced):
        await driver.write(replicas.set_cursor, first, "offset 8")
    await driver.write(replicas.set_cursor, again, "offset 9")


async def test_a_streaming_delivery_of_the_dead_waits_for_its_turn(world: World) -> None:
    driver = world.store.driver
    await join(world, "dead", -1.0)
    await join(world, "alive")
    queued = await world.hear("ann", "hello", me="dead")
    assert queued.run is not None
    address = queued.lane.address
    stream = await driver.write(deliveries.open_stream, queued.run.held, 1, address, (), world.clock())
    assert stream is not None
    await beat(world, "alive")
    assert await take(world, "alive") == []
    [run] = await driver.write(turns.claim, "alive", 9)
    assert run.streamed
    await driver.write(turns.finish, run.held, answer(run, "final"), world.clock())
    [out] = await take(world, "alive")
    assert (out.delivery.key, out.delivery.text) == (stream.key, "final")


async def test_a_turn_that_only_waited_for_a_persons_answer_has_cost_no_life(world: World) -> None:
    await join(world, "dead", -1.0)
    await join(world, "alive")
    queued = await world.hear("ann", "hello", me="dead")
    assert queued.run is not None
    run, asking, way = queued.run, Asking("1", "May I?", ("yes", "no")), Way(queued.lane.address, queued.lane)
    asked = Posed(world.ids(), asking, session=run.held.session, turn=run.name)
    ask = partial(questions.ask_in_turn, run, asked, [way], 20, world.clock())
    question = await world.store.driver.write(ask)
    await world.store.driver.write(questions.wait, run.held, question.id)
    assert await beat(world, "alive") == 1
    [again] = await world.store.driver.write(turns.claim, "alive", 9)
    assert (again.deaths, again.asked) == (0, True)
    # Whoever dies before it has waited again is counted: the turn may be why.
    await world.raw("delete from replicas where id = 'alive'")
    await join(world, "third")
    await beat(world, "third")
    [third] = await world.store.driver.write(turns.claim, "third", 9)
    assert third.deaths == 1


async def test_a_turn_after_one_that_was_taken_back_has_all_its_lives(world: World) -> None:
    await join(world, "dead", -1.0)
    await world.hear("ann", "it kills", message="m", me="dead")
    await join(world, "me")
    await beat(world, "me")
    await world.accept(world.arrival("ann", "", deletes="m"))
    assert await world.store.driver.write(turns.claim, "me", 10) == []
    await world.hear("ann", "an innocent one")
    [run] = await world.store.driver.write(turns.claim, "me", 10)
    assert (run.deaths, run.fails) == (0, 0)
