"""Scheduled work: made once, run once for each time that it is due, by whichever replica."""

import asyncio

import pytest
from msgspec.structs import replace

from segue.changes import audit
from segue.changes.audit import Event
from segue.changes.exchange import routes, schedules, turns
from segue.changes.exchange.schedules import Order, Recipient, Schedule, Time
from segue.core.contracts.database import Transaction
from segue.core.lanes import Place
from segue.core.schedules import ONCE, Plan, following
from segue.core.turns import TurnKind
from segue.core.values import PersonId
from segue.errors import Refused
from tests.changes.invariants import violations
from tests.changes.world import World, answer, private, public

HOURLY = "0 * * * *"


async def order(world: World, line: str = HOURLY, task: str = "look", user: str = "ann") -> Order:
    """Work that somebody wants in their private chat."""
    ann = await world.person(user)
    lane = await world.store.lane(private(user), ann)
    bound = await world.store.bound(lane)
    session = bound.id if bound else await world.renew(lane, ann, "hello")
    due = following(HOURLY, "UTC", world.clock())
    assert due is not None
    return Order(session, lane.key, ann.id, task, Plan(due, line, "UTC"), "origin", lane.address.key)


async def make(world: World, wanted: Order, call: str = "call") -> Schedule:
    return await world.store.driver.write(schedules.make, wanted, world.ids(), call, world.clock())


def anybody(person: PersonId, place: Place | None) -> Transaction[bool]:
    """Let everybody's work go on."""
    del person, place
    yield from ()
    return True


async def run(world: World, schedule: Schedule) -> bool:
    """Notice that work is due."""
    assert schedule.due is not None
    following_time = following(schedule.line, schedule.zone, schedule.due)
    time = Time(schedule.due, schedule.due, 0, following_time)
    arguments = schedule, time, Recipient(schedule.route), "", anybody, world.clock()
    return await world.store.driver.write(schedules.run, *arguments)


async def due(world: World) -> list[Schedule]:
    return await world.store.driver.read(schedules.due, world.clock(), 100)


async def scheduled(world: World) -> list[tuple[object, ...]]:
    return [tuple(row) for row in await world.raw("select session, call from turns where kind = 'scheduled'")]


async def test_the_same_call_makes_the_same_work(world: World) -> None:
    wanted = await order(world)
    first, second = await make(world, wanted), await make(world, wanted)
    assert first == second
    assert await make(world, wanted, "another call") != first
    assert await world.count("schedules") == 2


async def test_a_time_that_is_due_is_one_turn_however_many_notice(world: World) -> None:
    wanted = await order(world)
    made = await make(world, wanted)
    assert await due(world) == []
    world.clock.passes(3600)
    [found] = await due(world)
    other = await world.beside()
    noticed = await asyncio.gather(*(run(w, found) for w in (world, other, world, other)))
    assert sorted(noticed) == [False, False, False, True]
    assert made.due is not None
    assert await scheduled(world) == [(made.session, f"schedule/{made.id}/{made.due:.0f}")]
    assert await due(world) == []
    world.clock.passes(3600)
    [again] = await due(world)
    assert (again.id, again.due) == (made.id, made.due + 3600)
    assert await violations(world.raw) == []


async def test_work_for_once_ends_when_it_is_done(world: World) -> None:
    made = await make(world, await order(world, ONCE))
    world.clock.passes(3600)
    assert await run(world, made)
    assert await world.store.driver.read(schedules.list_answered, made.id) == [], "it was asked and isn't answered"
    [asked] = [one for one in await world.store.driver.write(turns.claim, "r", 9) if one.held.session == made.session]
    await world.store.driver.write(turns.finish, asked.held, answer(asked, "looked"), world.clock())
    assert [one.text for one in await world.store.driver.read(schedules.list_answered, made.id)] == ["looked"]
    assert await world.store.driver.read(schedules.owned, made.owner) == []
    assert not await run(world, made)


async def test_work_that_was_cancelled_is_not_done(world: World) -> None:
    made = await make(world, await order(world))
    await world.store.driver.write(schedules.cancel, made.id, made.owner, world.clock())
    world.clock.passes(3600)
    assert not await run(world, made)
    assert await scheduled(world) == []
    with pytest.raises(Refused):
        await world.store.driver.write(schedules.cancel, made.id, made.owner, world.clock())


async def test_nobody_sees_or_cancels_anothers(world: World) -> None:
    made = await make(world, await order(world))
    bob = await world.person("bob")
    assert await world.store.driver.read(schedules.owned, bob.id) == []
    await make(world, await order(world, user="bob"), "bob's own")
    with pytest.raises(Refused) as others:
        await world.store.driver.write(schedules.cancel, made.id, bob.id, world.clock())
    with pytest.raises(Refused) as nothing:
        await world.store.driver.write(schedules.cancel, "nothing", bob.id, world.clock())
    assert str(others.value) == str(nothing.value)


async def test_whoever_two_persons_turned_out_to_be_has_the_work_of_both(world: World) -> None:
    made = await make(world, await order(world))
    ann, bob = await world.person("ann"), await world.person("bob")
    await make(world, await order(world, user="bob"), "bob's call")
    merge = await world.store.link(ann, bob)
    found = await world.store.driver.read(schedules.owned, merge.kept)
    assert len(found) == 2
    world.clock.passes(3600)
    assert await run(world, made)
    [(person,)] = await world.raw("select person from turns where kind = 'scheduled'")
    assert person == merge.kept


async def test_work_whose_session_was_closed_ends_and_says_so(world: World) -> None:
    wanted = await order(world)
    made = await make(world, wanted)
    ann = await world.person("ann")
    await world.store.close_session(wanted.session, ann)
    world.clock.passes(3600)
    assert await run(world, made)
    assert await scheduled(world) == []
    assert await world.store.driver.read(schedules.owned, ann.id) == []
    [(text, address)] = await world.raw("select text, address from deliveries")
    assert (text, address) == (
        "Scheduled work has ended, because its session was closed, or others read it by now: look",
        wanted.route,
    )


async def test_a_run_comes_from_its_lane_as_long_as_that_speaks_to_the_session(world: World) -> None:
    wanted = await order(world)
    made = await make(world, wanted)
    world.clock.passes(3600)
    assert await run(world, made)
    [claimed] = await world.store.driver.write(turns.claim, "r", 10)
    [turn] = claimed.turns
    assert (turn.kind, turn.lane, turn.route) == (TurnKind.SCHEDULED, wanted.lane, wanted.route)


async def test_work_is_not_asked_of_the_session_that_somebody_else_began_in_its_place(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    lane = await world.thread(ann)
    session = await world.renew(lane, ann, "hello")
    wanted = replace(await order(world), session=session, lane=lane.key, route=lane.address.key)
    made = await make(world, wanted)
    await world.renew(lane, bob, "mine now")
    world.clock.passes(3600)
    assert await run(world, made)
    [claimed] = await world.store.driver.write(turns.claim, "r", 10)
    [turn] = claimed.turns
    assert (turn.session, turn.lane, turn.route) == (session, None, wanted.route)


async def test_work_of_whoever_may_talk_no_more_ends_instead_of_running(world: World) -> None:
    made = await make(world, await order(world))
    world.clock.now = made.due or 0.0

    def nobody(person: PersonId, place: Place | None) -> Transaction[bool]:
        assert place is not None
        assert person == made.owner
        yield from ()
        return False

    time = Time(world.clock(), world.clock(), 0, world.clock() + 60)
    arguments = made, time, Recipient(made.route), "", nobody, world.clock()
    assert not await world.store.driver.write(schedules.run, *arguments)
    assert await world.count("turns") == 0
    assert await world.store.driver.read(schedules.owned, made.owner) == []
    [fact] = await world.store.driver.read(audit.newest, 9)
    assert (fact.fact.event, fact.fact.person, fact.fact.detail) == (Event.REFUSED, made.owner, "scheduled work")


async def test_what_is_said_unasked_goes_to_nobody_elses_private_chat_once_two_are_parted(world: World) -> None:
    ann, bob = [await world.hear(user, "hello", private(user)) for user in ("ann", "bob")]
    chats = [private(user).address for user in ("ann", "bob")]

    async def heard_in() -> list[bool]:
        return [await world.store.driver.read(routes.hears, chat, bob.session) for chat in chats]

    assert await heard_in() == [False, True]
    merge = await world.store.link(ann.met.person, bob.met.person)
    assert await heard_in() == [True, True]
    await world.store.unlink(merge)
    assert await heard_in() == [False, True]


@pytest.mark.parametrize(("owner", "there"), [("ann", "club"), ("bob", "club/thread")])
async def test_a_home_is_the_hosts_yes_for_sessions_of_their_own_alone(world: World, owner: str, there: str) -> None:
    club, thread = public("club"), public("club", "thread")
    begun = await world.hear(owner, "hello", thread)
    await world.hear("ann", "hello", thread)
    ann = await world.person("ann")
    lane = (await world.store.lane(thread, ann)).key
    at = world.clock() + 3600
    made = await make(world, Order(begun.session, lane, ann.id, "look", Plan(at, "", "UTC"), "home", club.address.key))
    arguments = made, Time(at, at, 0, None), Recipient(made.route, agreed=True), "", anybody, at
    assert await world.store.driver.write(schedules.run, *arguments)
    [(route,)] = await world.raw("select route from turns where kind = 'scheduled'")
    assert route.endswith(f"/{there}" if "/" in there else f"/{there}/")


async def test_what_was_to_be_told_in_a_home_that_moved_goes_where_it_was_asked_for(world: World) -> None:
    club, wanted = public("club"), await order(world, ONCE, "tell the secret")
    await world.hear("ann", "hello", club)
    made = await make(world, replace(wanted, deliver="wall:club", route=club.address.key))
    ann = await world.person("ann")
    # Its chat speaks to a session now in which nothing was said: everybody has read that.
    await world.renew(await world.store.lane(private("ann"), ann), ann)
    assert await run(world, made)
    [(route,)] = await world.raw("select route from turns where kind = 'scheduled'")
    assert route == private("ann").address.key
