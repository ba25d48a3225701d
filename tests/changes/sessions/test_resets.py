"""Resets: whoever sweeps, however often and by whatever clock, a session is asked its last turn once."""

import asyncio
import random
from itertools import pairwise

import pytest

from segue.changes.exchange import turns
from segue.changes.sessions import resets
from segue.core.messages import Text
from segue.core.moves import Spawn
from segue.core.resets import Due, Policies, Policy, When, due
from segue.core.settings import Settings
from segue.core.turns import Ask, Finish, Run, TurnKind
from segue.core.values import SessionId
from tests.changes.invariants import violations
from tests.changes.world import Engine, World, private, public

IDLE = Settings(resets=Policies(Policy(When.IDLE, idle_minutes=10)))
HOUR = 3600.0
WORDS = (Text("Save what you want to remember."),)


async def sweep(world: World, settings: Settings = IDLE) -> int:
    """Look at everything once; returns how many were asked their last turn."""
    found = await world.store.driver.read(resets.to_look_at, world.clock(), 100)
    asked = [await world.store.driver.write(resets.look, s, settings.resets, WORDS, world.clock()) for s in found]
    return sum(asked)


async def answers(world: World) -> list[Run]:
    """Whatever waits is answered."""
    runs: list[Run] = []
    waiting = await world.store.driver.write(turns.claim, "r", 100)
    while waiting:
        run = waiting.pop()
        runs.append(run)
        done = Finish(tuple(turn.seq for turn in run.turns), ())
        finished = await world.store.driver.write(turns.finish, run.held, done, world.clock())
        if finished.next:
            waiting.append(finished.next)
    return runs


async def talk(world: World, user: str = "ann", settings: Settings = IDLE) -> SessionId:
    """Somebody says something and is answered."""
    queued = await world.hear(user, "hello", settings=settings)
    await world.store.say(queued.session, await world.store.person(world.arrival(user, "").speaker.identity), "hello")
    await answers(world)
    return queued.session


async def endings(world: World) -> list[tuple[str, int]]:
    return [tuple(row) for row in await world.raw("select session, seq from turns where kind = 'ending' order by 1, 2")]


async def test_a_session_that_is_over_is_asked_its_last_turn_once(world: World) -> None:
    session = await talk(world)
    assert await sweep(world) == 0
    world.clock.passes(599)
    assert await sweep(world) == 0
    world.clock.passes(1)
    assert await sweep(world) == 1
    assert await sweep(world) == 0
    [run] = await answers(world)
    assert (run.held.session, run.turns[0].kind, run.turns[0].parts) == (session, TurnKind.ENDING, WORDS)
    assert (run.turns[0].route, run.turns[0].lane) == ("", None)
    world.clock.passes(HOUR)
    assert await sweep(world) == 0


async def test_the_last_turn_makes_a_session_no_younger_and_keeps_nobody_waiting(world: World) -> None:
    first = await talk(world)
    world.clock.passes(HOUR)
    assert await sweep(world) == 1
    queued = await world.hear("ann", "good morning", settings=IDLE)
    assert queued.reset is Due.IDLE
    assert queued.session != first
    assert {run.held.session for run in await answers(world)} == {first, queued.session}
    bob = await talk(world, "bob")
    world.clock.passes(HOUR)
    await sweep(world)
    await answers(world)
    again = await world.hear("bob", "good morning", settings=IDLE)
    assert (again.reset, again.session != bob) == (Due.IDLE, True)


async def test_a_session_that_a_message_found_to_be_over_first_is_asked_too(world: World) -> None:
    first = await talk(world)
    world.clock.passes(HOUR)
    await talk(world)
    assert await sweep(world) == 1
    assert await endings(world) == [(first, 2)]
    await answers(world)
    assert await sweep(world) == 0


async def test_a_session_that_was_left_on_purpose_is_not_asked(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.store.lane(private("ann"), ann)
    await talk(world)
    await world.renew(lane, ann)
    world.clock.passes(HOUR)
    assert await sweep(world) == 0


async def test_a_session_that_goes_on_after_all_is_asked_again_when_that_is_over(world: World) -> None:
    session = await talk(world)
    world.clock.passes(HOUR)
    assert await sweep(world) == 1
    await answers(world)
    world.clock.passes(-HOUR)
    assert await talk(world) == session
    world.clock.passes(HOUR)
    assert await sweep(world) == 1
    assert await endings(world) == [(session, 2), (session, 4)]


async def test_nothing_is_asked_of_a_session_in_which_nothing_was_said(world: World) -> None:
    ann = await world.person("ann")
    await world.renew(await world.store.lane(private("ann"), ann), ann)
    world.clock.passes(HOUR)
    assert await sweep(world) == 0


async def test_two_replicas_at_once_ask_once(world: World) -> None:
    sessions = [await talk(world, f"user{n}") for n in range(20)]
    world.clock.passes(HOUR)
    other = await world.beside()
    assert sum(await asyncio.gather(sweep(world), sweep(other), sweep(world), sweep(other))) == 20
    assert await endings(world) == sorted((session, 2) for session in sessions)


async def test_no_last_turn_while_a_turn_waits_a_child_works_or_background_work_keeps_it(world: World) -> None:
    ann = await world.person("ann")
    session = await talk(world)
    child = world.store.new_session_id()
    await world.store.move(Spawn(session, child, "search"), ann)
    grandchild = world.store.new_session_id()
    await world.store.move(Spawn(child, grandchild, "deeper"), ann)
    asked = Ask(grandchild, TurnKind.SENT, "call", WORDS, ann.id)
    await world.store.driver.write(turns.ask, asked, world.clock())
    await world.store.driver.write(resets.keep, session, "a build", world.clock() + 3 * HOUR, world.clock())
    world.clock.passes(HOUR)
    assert await sweep(world) == 0
    await answers(world)
    world.clock.passes(HOUR)
    assert await sweep(world) == 0
    assert (await world.hear("ann", "still there?", settings=IDLE)).session == session
    world.clock.passes(HOUR)
    await world.store.driver.write(resets.let_go, session, "a build", world.clock())
    assert await sweep(world) == 0
    await answers(world)
    world.clock.passes(HOUR)
    assert await sweep(world) == 1


async def test_a_session_that_was_over_while_a_turn_ran_ends_as_long_after_it_as_its_policy_says(world: World) -> None:
    settings = Settings(resets=Policies(Policy(When.IDLE, idle_minutes=0.5)))
    session = await talk(world, settings=settings)
    await world.hear("ann", "and then?", settings=settings)
    world.clock.passes(30)
    assert await sweep(world, settings) == 0, "it is at work"
    await answers(world)
    world.clock.passes(30)
    assert await sweep(world, settings) == 1
    assert await endings(world) == [(session, 3)]


async def test_background_work_that_never_says_it_is_done_has_an_end(world: World) -> None:
    session = await talk(world)
    await world.store.driver.write(resets.keep, session, "a build", world.clock() + HOUR, world.clock())
    world.clock.passes(HOUR - 1)
    assert await sweep(world) == 0
    world.clock.passes(61)
    assert await sweep(world) == 1


async def test_a_session_that_was_just_brought_back_is_not_over(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.store.lane(private("ann"), ann)
    old = await talk(world)
    await world.renew(lane, ann, "something else")
    world.clock.passes(HOUR)
    await world.resume(lane, old, ann)
    assert await sweep(world) == 0
    queued = await world.hear("ann", "where were we?", settings=IDLE)
    assert (queued.session, queued.reset) == (old, None)


async def test_a_session_goes_on_as_long_as_one_of_its_lanes_does(world: World) -> None:
    ann = await world.person("ann")
    settings = Settings(resets=Policies(IDLE.resets.default, kinds={"thread": Policy(When.IDLE, idle_minutes=180)}))
    session = await talk(world, settings=settings)
    thread = await world.store.lane(private("ann", "t"), ann)
    await world.resume(thread, session, ann)
    world.clock.passes(HOUR)
    assert await sweep(world, settings) == 0
    world.clock.passes(2 * HOUR)
    assert await sweep(world, settings) == 1


async def test_a_session_is_looked_at_again_when_a_lane_comes_to_it_or_leaves_it(world: World) -> None:
    ann = await world.person("ann")
    settings = Settings(resets=Policies(IDLE.resets.default, kinds={"thread": Policy()}))
    lane, thread = await world.dm(ann, "ann"), await world.store.lane(private("ann", "t"), ann)
    session = await talk(world, settings=settings)
    await world.resume(thread, session, ann)
    world.clock.passes(HOUR)
    assert await sweep(world, settings) == 0, "the thread never forgets"
    await world.renew(thread, ann)
    assert await sweep(world, settings) == 1
    await answers(world)
    other = await talk(world, settings=settings)
    await world.renew(lane, ann)
    world.clock.passes(HOUR)
    assert await sweep(world, settings) == 0, "it was left on purpose"
    await world.resume(lane, other, ann)
    world.clock.passes(HOUR)
    assert await sweep(world, settings) == 1
    assert {session for session, _ in await endings(world)} == {session, other}


async def test_other_policies_are_heeded_from_the_start(world: World) -> None:
    never, driver = Settings(), world.store.driver
    await talk(world)
    await driver.write(resets.adopt, "never")
    assert await sweep(world, never) == 0
    world.clock.passes(HOUR)
    assert await sweep(world) == 0, "it was put off for ever"
    await driver.write(resets.adopt, "idle")
    assert await sweep(world) == 1


async def test_a_look_costs_the_same_however_many_sessions_there_are(world: World) -> None:
    if world.engine is Engine.SQLITE:
        sql = "explain query plan select id from sessions where sweep <= $1 order by sweep limit $2"
        [(*_, plan)] = await world.raw(sql, 1.0, 1)
        assert "sessions_to_sweep" in plan
    for n in range(5):
        await talk(world, f"user{n}")
    await sweep(world)
    assert await world.store.driver.read(resets.to_look_at, world.clock(), 100) == []
    world.clock.passes(HOUR)
    assert await sweep(world) == 5
    assert await world.store.driver.read(resets.to_look_at, world.clock() + 1e9, 100) == []


@pytest.mark.parametrize("seed", range(6))
async def test_no_session_ends_twice_or_without_a_reason_whatever_the_clocks_do(world: World, seed: int) -> None:
    dice = random.Random(seed)
    zone = dice.choice(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "UTC"])
    policy = Policy(dice.choice([When.IDLE, When.DAILY, When.BOTH]), 600, dice.randrange(24), zone)
    settings = Settings(resets=Policies(policy))
    # The night of 26 October 2025 in Berlin, or 29 March 2026: somewhere clocks change within the days that follow.
    world.clock.now = dice.choice([1_761_350_400.0, 1_774_656_000.0, 1_325_203_200.0])
    lanes: dict[str, tuple[SessionId, float]] = {}
    waits: set[SessionId] = set()
    other = await world.beside()
    for _ in range(120):
        user, here = dice.choice(["ann", "bob", "cem"]), dice.choice([world, other])
        match dice.choice(["talk", "talk", "wait", "answer", "sweep", "sweep", "jump"]):
            case "talk":
                queued = await here.hear(user, "hello", public("g"), settings=settings)
                await here.store.say(
                    queued.session, await here.store.person(here.arrival(user, "").speaker.identity), "hi"
                )
                at, (session, used) = here.clock(), lanes.get(user, (queued.session, 0.0))
                expected = due(policy, used, at) if user in lanes and session not in waits else None
                assert (queued.reset, queued.session != session) == (expected, expected is not None)
                lanes[user] = queued.session, at if expected else max(used, at)
                waits.add(queued.session)
            case "wait":
                world.clock.passes(dice.choice([60.0, HOUR, 5 * HOUR, 11 * HOUR, 24 * HOUR]))
            case "jump":
                world.clock.passes(dice.choice([-HOUR, HOUR, -30 * HOUR, 30 * HOUR]))
            case "answer":
                for run in await answers(here):
                    user = next((u for u, (s, _) in lanes.items() if s == run.held.session), "")
                    if user and run.turns[0].kind is TurnKind.ARRIVAL:
                        lanes[user] = run.held.session, max(lanes[user][1], here.clock())
                waits.clear()
            case _:
                one, two = await asyncio.gather(sweep(world, settings), sweep(other, settings))
                assert one + two <= len(lanes) * 3
    await answers(world)
    rows = await world.raw("select session, kind from turns order by session, seq")
    assert not [a for a, b in pairwise(rows) if a[1] == "ending" and tuple(a) == tuple(b)], "a session ended twice"
    whys = await world.raw("select distinct ended_why from bindings where until is not null")
    assert {why for (why,) in whys} <= {"idle", "daily"}
    assert await violations(world.raw) == []
