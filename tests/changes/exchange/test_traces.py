"""Traces: a message is followed from where it came in to all that was sent because of it."""

from segue.changes.commands.request import Answer, Request
from segue.changes.exchange import deliveries, turns
from segue.changes.exchange.deliveries import Attempt
from segue.changes.exchange.traces import SendState, Trace, TurnState, of_message
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address
from segue.core.messages import Outgoing
from segue.core.moves import Why
from segue.core.turns import Outcome
from tests.changes.world import World, answer, private


async def trace(world: World, message: str) -> Trace:
    return await world.store.driver.read(of_message, message)


async def take(world: World) -> Outgoing:
    [out] = await world.store.driver.write(deliveries.outgoing, "r", "telegram", "bot", 1)
    return out


async def test_a_message_is_followed_to_its_receipt(world: World) -> None:
    queued = await world.hear("ann", "hello", private("here"), message="in1", me="r")
    assert queued.run is not None
    [turn] = (await trace(world, "in1")).turns
    assert (turn.session, turn.turn, turn.lane) == (queued.session, 1, queued.lane.key)
    assert (turn.why, turn.since, turn.accepted) == (Why.FIRST, world.clock(), world.clock())
    assert (turn.state, turn.finished, turn.deliveries) == (TurnState.RUNNING, None, ())

    await world.store.driver.write(turns.finish, queued.run.held, answer(queued.run, "hi"), world.clock.passes(1))
    [turn] = (await trace(world, "in1")).turns
    assert (turn.state, turn.finished) == (TurnState.ANSWERED, world.clock())
    assert [(d.state, d.attempts) for d in turn.deliveries] == [(SendState.WAITING, 0)]

    out = await take(world)
    [turn] = (await trace(world, "in1")).turns
    assert [(d.state, d.attempts) for d in turn.deliveries] == [(SendState.SENDING, 1)]

    await world.store.driver.write(deliveries.unsent, out, Attempt.REFUSED, 0.0, "too many")
    [turn] = (await trace(world, "in1")).turns
    assert [(d.state, d.error) for d in turn.deliveries] == [(SendState.WAITING, "too many")]

    await world.store.driver.write(deliveries.sent, await take(world), "out1", world.clock.passes(1))
    found = await trace(world, "in1")
    [delivery] = found.turns[0].deliveries
    assert (delivery.state, delivery.attempts, delivery.message) == (SendState.SENT, 2, "out1")
    assert (delivery.at, delivery.address) == (world.clock(), private("here").address.key)
    assert (await trace(world, "out1")).turns == found.turns


async def test_what_waits_behind_another_is_queued(world: World) -> None:
    await world.hear("ann", "one", private("here"), message="in1", me="r")
    await world.hear("ann", "two", private("here"), message="in2", me="r")
    [turn] = (await trace(world, "in2")).turns
    assert (turn.turn, turn.state) == (2, TurnState.QUEUED)


async def test_messages_that_were_answered_as_one_share_what_was_sent(world: World) -> None:
    for message in ("in1", "in2"):
        await world.hear("ann", "hi", private("here"), message=message)
    [run] = await world.store.driver.write(turns.claim, "r", 1)
    done = answer(run, "both", outcome=Outcome.FAILED, error="broke")
    await world.store.driver.write(turns.finish, run.held, done, world.clock())
    [first], [second] = (await trace(world, "in1")).turns, (await trace(world, "in2")).turns
    assert (first.within, second.within, second.turn) == (1, 1, 2)
    assert (second.state, second.error) == (TurnState.FAILED, "broke")
    assert first.deliveries == second.deliveries != ()


async def test_what_could_not_be_sent_is_dead(world: World) -> None:
    await world.store.driver.write(
        deliveries.notify, Address("telegram", "bot", chat="x"), "hi", "k", (), world.clock()
    )
    out = await take(world)
    await world.store.driver.write(deliveries.placed, out.delivery, "r", "out1")
    await world.store.driver.write(deliveries.give_up, out, "blocked", world.clock())
    found = await trace(world, "out1")
    assert found.turns == ()
    assert [(n.state, n.at, n.error) for n in found.notices] == [(SendState.DEAD, world.clock(), "blocked")]


def silent(_: Request) -> Transaction[Answer]:
    yield from ()
    return Answer()


async def test_a_command_was_seen_and_became_no_turn(world: World) -> None:
    arrival = world.arrival("ann", "/new", message="11")
    await world.store.driver.write(world.door(run=silent).accept, arrival, world.fresh(arrival), None)
    [seen] = (await trace(world, "11")).seen
    assert seen.at == world.clock()
    assert seen.account.startswith("telegram")
    assert await trace(world, "1") == Trace("1")


async def test_the_same_id_on_two_chats_is_two_messages(world: World) -> None:
    one = await world.hear("ann", "hi", private("a"), message="7")
    two = await world.hear("bob", "hi", private("b"), message="7")
    assert [turn.session for turn in (await trace(world, "7")).turns] == [one.session, two.session]


async def test_the_rule_is_the_one_that_held_then(world: World) -> None:
    queued = await world.hear("ann", "hi", private("here"), message="in1")
    ann = await world.person("ann")
    other = await world.renew(queued.lane, ann, "elsewhere")
    await world.resume(queued.lane, queued.session, ann)
    await world.hear("ann", "again", private("here"), message="in2")
    assert other != queued.session
    assert (await trace(world, "in1")).turns[0].why is Why.FIRST
    assert (await trace(world, "in2")).turns[0].why is Why.RESUME
