"""Moves: each of them, each refusal and each undo, as the database has it afterwards."""

from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from segue.changes.exchange import turns
from segue.core.lanes import Address, Lane, Person
from segue.core.moves import Consent, Fork, Handoff, Limits, Move, Release, Renew, Resume, Spawn, Start, Why
from segue.core.transcripts import AGENT, Ending, Tip
from segue.core.values import PersonId, SessionId
from segue.errors import Invalid, Refusal, Refused, StoreConflict
from tests.changes.world import BEGINNING, Engine, World, answer, private

NOWHERE = Lane(Address("telegram", "bot", chat="never seen"))


async def everything(world: World) -> dict[str, list[Any]]:
    """All rows that a move could touch."""
    tables = ("sessions", "bindings", "moves", "titles", "entries", "tips", "lanes", "handoffs")
    return {table: sorted(map(repr, await world.raw(f"select * from {table}"))) for table in tables}


async def refuses(world: World, why: Refusal, move: Callable[[], Awaitable[object]]) -> None:
    """It is refused with that reason, and nothing changes."""
    before = await everything(world)
    with pytest.raises(Refused) as refused:
        await move()
    assert refused.value.why is why
    assert await everything(world) == before


async def refuses_move(world: World, why: Refusal, move: Move, by: Person) -> None:
    await refuses(world, why, lambda: world.store.move(move, by))


async def hands_off(world: World, session: SessionId, origin: Lane) -> None:
    """A handoff of this session has been asked for and hasn't settled."""
    await world.raw(
        "insert into handoffs (id, session, origin, destination, kind, state, by_person, requested, progressed, "
        "deadline) select $1, id, $2, 'slack', 'dm', 'requested', owner, 0, 0, 60 from sessions where id = $3",
        f"handoff of {session}",
        origin.key,
        session,
    )


async def settles(world: World) -> None:
    await world.raw("update handoffs set state = 'done', settled = 1")


async def speaks_to(world: World, lane: Lane) -> SessionId | None:
    session = await world.store.bound(lane)
    return session.id if session else None


async def test_a_lane_that_nobody_spoke_in_speaks_to_nobody(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    assert await world.store.bound(lane) is None
    assert await world.store.history(lane) == []
    assert await world.store.last_move(lane) is None


async def test_renew_starts_a_session_and_keeps_the_old_one(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    first = await world.renew(lane, ann, "one")
    second = await world.renew(lane, ann, "two")
    assert await speaks_to(world, lane) == second
    now, before = await world.store.history(lane)
    assert (now.lane, now.session, now.since, now.until, now.why, now.ended_why, now.by) == (
        *(lane, second, BEGINNING + 3, None),
        *(Why.NEW, None, ann.id),
    )
    assert (before.session, before.since, before.until, before.why, before.ended_why) == (
        *(first, BEGINNING + 2, BEGINNING + 3),
        *(Why.NEW, Why.NEW),
    )
    assert await world.said(first) == ["one"]
    assert (await world.store.session(second, ann)).owner == ann.id


async def test_resume_brings_an_earlier_session_back(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    first, second = await world.renew(lane, ann, "one"), await world.renew(lane, ann, "two")
    await world.resume(lane, first, ann)
    assert await speaks_to(world, lane) == first
    assert [(b.session, b.why) for b in await world.store.history(lane)] == [
        (first, Why.RESUME),
        (second, Why.NEW),
        (first, Why.NEW),
    ]
    assert await world.store.lanes_of(second) == []


async def test_a_session_is_spoken_to_from_several_places(world: World) -> None:
    ann = await world.person("ann")
    there = await world.person("ann", platform="slack")
    await world.store.link(ann, there)
    lanes = [await world.dm(ann), await world.dm(there), await world.dm(ann, "another")]
    session = await world.renew(lanes[0], ann, "hello")
    for lane in lanes[1:]:
        await world.resume(lane, session, ann)
    assert await world.store.lanes_of(session) == lanes[::-1]
    assert [b.lane for b in await world.store.history(session)] == lanes[::-1]


async def test_fork_goes_on_from_where_the_source_stands_and_leaves_it_alone(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    source = await world.renew(lane, ann, "one", "two")
    fork = await world.fork(lane, source, ann, title="side")
    await world.store.say(fork, ann, "three")
    assert await speaks_to(world, lane) == fork
    assert await world.said(fork) == ["one", "two", "three"]
    assert await world.said(source) == ["one", "two"]
    made = await world.store.session(fork, ann)
    assert (made.parent, made.title) == (source, "side")
    assert [s.id for s in await world.store.branches(source)] == [fork]


async def test_fork_from_an_earlier_entry(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    source = await world.renew(lane, ann, "one", "two")
    assert await world.said(await world.fork(lane, source, ann, at=Tip(source, 1))) == ["one"]


async def test_a_fork_starts_only_from_what_its_source_can_reach(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    lane = await world.dm(ann)
    mine = await world.renew(lane, ann, "mine")
    secret = await world.renew(await world.dm(bob), bob, "secret")
    fork = await world.fork(lane, mine, ann)
    await world.store.say(fork, ann, "undone")
    await world.store.undo(fork, ann)
    for at in (Tip(secret, 1), Tip(mine, 2), Tip(mine, 0), Tip(SessionId("none"), 1)):
        move = Fork(lane, mine, world.store.new_session_id(), at=at)
        await refuses_move(world, Refusal.NOT_FOUND, move, ann)
    assert await world.said(await world.fork(lane, fork, ann, at=Tip(fork, 1))) == ["mine", "undone"]
    assert await world.said(await world.fork(lane, fork, ann)) == ["mine"]
    # What the source reached through its own past is fine too.
    later = await world.fork(lane, mine, ann)
    await world.store.say(later, ann, "later")
    assert await world.said(await world.fork(lane, later, ann, at=Tip(mine, 1))) == ["mine"]


async def test_handoff_binds_the_destination_and_a_release_completes_it(world: World) -> None:
    ann = await world.person("ann")
    origin, destination = await world.dm(ann), await world.dm(ann, "there")
    other = await world.renew(destination, ann, "before")
    session = await world.renew(origin, ann, "hello")
    await world.store.move(Handoff(origin, destination), ann)
    assert await world.store.lanes_of(session) == [destination, origin]
    await world.store.move(Release(origin, Why.HANDOFF), ann)
    assert await world.store.lanes_of(session) == [destination]
    assert [(b.session, b.why, b.ended_why) for b in await world.store.history(destination)] == [
        (session, Why.HANDOFF, None),
        (other, Why.NEW, Why.HANDOFF),
    ]
    assert (await world.store.history(origin))[0].ended_why is Why.HANDOFF


async def test_spawn_starts_a_child_with_or_without_a_lane(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    parent = await world.renew(lane, ann, "go")
    alone, here = world.store.new_session_id(), world.store.new_session_id()
    moving = await world.store.move(Spawn(parent, alone, "search"), ann)
    assert (moving.session, moving.made) == (alone, ())
    thread = await world.thread(ann)
    await world.store.move(Spawn(parent, here, lane=thread, start=Start.FORK, ending=Ending.ONE_SHOT), ann)
    assert await speaks_to(world, thread) == here
    assert await world.said(here) == ["go"]
    assert await world.store.path(alone) == []
    assert await world.store.child(parent, "search") == alone
    assert [s.id for s in await world.store.children(parent)] == [alone, here]
    assert {s.parent for s in await world.store.children(parent)} == {parent}
    with pytest.raises(Refused):
        await world.store.child(parent, "")


async def test_a_childs_label_is_free_again_when_it_is_closed(world: World) -> None:
    ann = await world.person("ann")
    parent = await world.renew(await world.dm(ann), ann, "go")
    first, second = world.store.new_session_id(), world.store.new_session_id()
    await world.store.move(Spawn(parent, first, "search"), ann)
    await refuses_move(world, Refusal.LABEL_TAKEN, Spawn(parent, second, "search"), ann)
    await world.store.close_session(first, ann)
    await world.store.move(Spawn(parent, second, "search"), ann)
    await refuses(world, Refusal.LABEL_TAKEN, lambda: world.store.reopen_session(first, ann))
    await world.store.close_session(second, ann)
    await world.store.reopen_session(first, ann)
    assert await world.store.child(parent, "search") == first


async def test_release_lets_a_lane_speak_to_nobody(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    session = await world.renew(lane, ann, "hello")
    await world.store.move(Release(lane), ann)
    assert await speaks_to(world, lane) is None
    assert (await world.store.history(lane))[0].ended_why is Why.RELEASE
    await world.resume(lane, session, ann)


async def test_closing_lets_all_lanes_go_and_keeps_the_transcript(world: World) -> None:
    ann = await world.person("ann")
    lanes = [await world.dm(ann, chat) for chat in "abc"]
    session = await world.renew(lanes[0], ann, "hello")
    for lane in lanes[1:]:
        await world.resume(lane, session, ann)
    await world.store.close_session(session, ann)
    assert [await speaks_to(world, lane) for lane in lanes] == [None] * 3
    assert {(await world.store.history(lane))[0].ended_why for lane in lanes} == {Why.CLOSE}
    assert await world.said(session) == ["hello"]
    assert (await world.store.session(session, ann)).closed == world.clock()
    await refuses_move(world, Refusal.CLOSED, Resume(lanes[0], session), ann)
    await refuses(world, Refusal.CLOSED, lambda: world.store.close_session(session, ann))
    # A branch of it may go on.
    assert await world.said(await world.fork(lanes[0], session, ann)) == ["hello"]
    await world.store.reopen_session(session, ann)
    await world.resume(lanes[1], session, ann)


MOVES: dict[str, Callable[[World, Lane, Lane, SessionId], Move]] = {
    "renew": lambda w, lane, _other, _session: Renew(lane, w.store.new_session_id()),
    "resume": lambda _w, _lane, other, session: Resume(other, session),
    "fork": lambda w, lane, _other, session: Fork(lane, session, w.store.new_session_id(), title="fork"),
    "handoff": lambda _w, lane, other, _session: Handoff(lane, other),
    "spawn": lambda w, _lane, other, session: Spawn(session, w.store.new_session_id(), lane=other),
    "release": lambda _w, lane, _other, _session: Release(lane),
}


@pytest.mark.parametrize("before", ["bound before", "free before"])
@pytest.mark.parametrize("kind", MOVES)
async def test_every_move_can_be_taken_back_and_again(world: World, kind: str, before: str) -> None:
    ann = await world.person("ann")
    lane, other = await world.dm(ann), await world.dm(ann, "other")
    session = await world.renew(lane, ann, "hello")
    if before == "bound before":
        await world.renew(other, ann, "other")
    were = [await speaks_to(world, at) for at in (lane, other)]
    world.clock.passes(1)
    made = await world.store.move(MOVES[kind](world, lane, other, session), ann)
    are = [await speaks_to(world, at) for at in (lane, other)]
    assert are != were
    [touched] = made.made
    last = await world.store.last_move(touched.lane)
    assert last is not None
    assert (last.id, last.kind, last.at) == (made.id, kind, world.clock())

    world.clock.passes(1)
    undone = await world.store.undo_move(made.id, ann)
    assert [await speaks_to(world, at) for at in (lane, other)] == were
    newest = (await world.store.history(touched.lane))[0]
    assert Why.UNDO in {newest.why, newest.ended_why}
    last = await world.store.last_move(touched.lane)
    assert last is None or last.id != made.id
    await refuses(world, Refusal.NOTHING_TO_UNDO, lambda: world.store.undo_move(made.id, ann))
    # What was taken back can be had again: an undo is a move too.
    await world.store.undo_move(undone.id, ann)
    assert [await speaks_to(world, at) for at in (lane, other)] == are
    assert await world.said(session) == ["hello"]


async def test_a_close_can_be_taken_back_with_all_its_lanes(world: World) -> None:
    ann = await world.person("ann")
    lanes = [await world.dm(ann, chat) for chat in "ab"]
    session = await world.renew(lanes[0], ann, "hello")
    await world.resume(lanes[1], session, ann)
    await world.store.close_session(session, ann)
    last = [last for lane in lanes if (last := await world.store.last_move(lane)) and last.kind == "close"]
    await world.store.undo_move(last[0].id, ann)
    assert [await speaks_to(world, lane) for lane in lanes] == [session] * 2
    assert (await world.store.session(session, ann)).closed is None


async def test_undo_is_refused_when_the_lane_has_moved_on(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    await world.renew(lane, ann, "one")
    made = await world.store.last_move(lane)
    assert made is not None
    await world.renew(lane, ann, "two")
    await refuses(world, Refusal.MOVED_SINCE, lambda: world.store.undo_move(made.id, ann))
    await refuses(world, Refusal.NOTHING_TO_UNDO, lambda: world.store.undo_move("none", ann))


async def test_undo_is_refused_when_the_session_before_was_closed(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    first = await world.renew(lane, ann, "one")
    await world.renew(lane, ann, "two")
    made = await world.store.last_move(lane)
    assert made is not None
    await world.store.close_session(first, ann)
    await refuses(world, Refusal.CLOSED, lambda: world.store.undo_move(made.id, ann))


async def test_moves_are_undone_one_after_the_other_whatever_the_clock_says(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    sessions = []
    for text in "abc":
        sessions.append(await world.renew(lane, ann, text))
        world.clock.passes(-10)
    for expected in (sessions[1], sessions[0], None):
        last = await world.store.last_move(lane)
        assert last is not None
        await world.store.undo_move(last.id, ann)
        assert await speaks_to(world, lane) == expected
    assert await world.store.last_move(lane) is None


async def test_what_comes_later_in_a_lane_begins_no_earlier_whatever_the_clocks_say(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    await world.renew(lane, ann, "one")
    world.clock.passes(-100)
    await world.renew(lane, ann, "two")
    world.clock.passes(-100)
    await world.store.move(Release(lane), ann)
    world.clock.passes(-100)
    await world.renew(lane, ann, "three")
    bindings = (await world.store.history(lane))[::-1]
    for before, after in pairwise(bindings):
        assert before.until is not None
        assert before.since <= before.until <= after.since


async def test_not_yours_and_does_not_exist_read_the_same(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    secret = await world.renew(await world.dm(ann), ann, "secret")
    lane = await world.dm(bob)
    texts = set()
    for session in (secret, SessionId("doesn't exist")):
        fresh = world.store.new_session_id()
        for move in (Resume(lane, session), Fork(lane, session, fresh), Spawn(session, fresh)):
            with pytest.raises(Refused) as refused:
                await world.store.move(move, bob)
            texts.add(str(refused.value))
        attempts: list[Awaitable[object]] = [
            world.store.close_session(session, bob),
            world.store.reopen_session(session, bob),
            world.store.session(session, bob),
            world.store.set_title(session, "mine", bob),
        ]
        for attempt in attempts:
            with pytest.raises(Refused) as refused:
                await attempt
            texts.add(str(refused.value))
    assert texts == {Refusal.NOT_FOUND.value}


async def test_what_a_shared_lane_has_read_whole_anybody_there_may_bring_back(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    lane, private_lane = await world.thread(ann), await world.dm(ann)
    here = await world.renew(lane, ann, "begun here")
    elsewhere = await world.renew(private_lane, ann, "begun elsewhere")
    await refuses_move(world, Refusal.NOT_FOUND, Resume(lane, elsewhere), bob)
    await world.store.move(Resume(lane, elsewhere, consent=Consent.GIVEN), ann)
    await world.resume(lane, here, bob)
    await world.resume(lane, elsewhere, bob)
    await world.resume(lane, here, bob)
    await world.exchange(elsewhere, ann, "said in private since", "answered there")
    await refuses_move(world, Refusal.NOT_FOUND, Resume(lane, elsewhere), bob)
    await refuses_move(world, Refusal.NEEDS_YES, Resume(lane, elsewhere), ann)


async def test_more_readers_need_the_owners_yes(world: World) -> None:
    ann = await world.person("ann")
    private_lane, thread = await world.dm(ann), await world.thread(ann)
    session = await world.renew(private_lane, ann, "private")
    fresh = world.store.new_session_id()
    for move in (Resume(thread, session), Fork(thread, session, fresh), Handoff(private_lane, thread)):
        await refuses_move(world, Refusal.NEEDS_YES, move, ann)
    await world.store.move(Handoff(private_lane, thread, consent=Consent.GIVEN), ann)
    assert await speaks_to(world, thread) == session


async def test_already_there_and_nothing_there(world: World) -> None:
    ann = await world.person("ann")
    lane, other = await world.dm(ann), await world.dm(ann, "other")
    session = await world.renew(lane, ann, "hello")
    await refuses_move(world, Refusal.ALREADY_THERE, Resume(lane, session), ann)
    await refuses_move(world, Refusal.SAME_LANE, Handoff(lane, lane), ann)
    await refuses_move(world, Refusal.NOTHING_BOUND, Handoff(other, lane), ann)
    await refuses_move(world, Refusal.NOTHING_BOUND, Release(other), ann)
    await world.resume(other, session, ann)
    await refuses_move(world, Refusal.SAME_LANE, Handoff(lane, other), ann)


async def test_only_its_owner_hands_a_session_off(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    thread = await world.thread(ann)
    await world.renew(thread, ann, "shared")
    lane = await world.dm(bob)
    await refuses_move(world, Refusal.NOT_ALLOWED, Handoff(thread, lane), bob)


async def test_a_busy_session_is_neither_handed_off_nor_closed(world: World) -> None:
    ann = await world.person("ann")
    queued = await world.hear("ann", "hello", me="r")
    lane, other = queued.lane, await world.dm(ann, "other")
    await refuses_move(world, Refusal.BUSY, Handoff(lane, other), ann)
    await refuses(world, Refusal.BUSY, lambda: world.store.close_session(queued.session, ann))
    assert queued.run is not None
    await world.store.driver.write(turns.finish, queued.run.held, answer(queued.run, "hi"), world.clock())
    await world.store.move(Handoff(lane, other), ann)
    await world.store.close_session(queued.session, ann)


async def test_while_a_handoff_runs_nothing_takes_its_lanes_away(world: World) -> None:
    ann = await world.person("ann")
    origin, free, taken = [await world.dm(ann, chat) for chat in ("origin", "free", "taken")]
    elsewhere = await world.renew(taken, ann, "elsewhere")
    await world.renew(origin, ann, "before")
    session = await world.renew(origin, ann, "moving")
    made = await world.store.last_move(origin)
    assert made is not None
    fresh = world.store.new_session_id()
    await hands_off(world, session, origin)
    moves: list[Move] = [
        Renew(origin, fresh),
        Resume(origin, elsewhere),
        Resume(free, session),
        Fork(origin, elsewhere, fresh),
        Handoff(origin, free),
        Handoff(taken, origin),
        Spawn(elsewhere, fresh, lane=origin),
        Release(origin),
    ]
    for move in moves:
        await refuses_move(world, Refusal.HANDOFF_RUNNING, move, ann)
    await refuses(world, Refusal.HANDOFF_RUNNING, lambda: world.store.close_session(session, ann))
    await refuses(world, Refusal.HANDOFF_RUNNING, lambda: world.store.undo_move(made.id, ann))
    # Others may still branch off from it elsewhere.
    await world.fork(free, session, ann)
    await settles(world)
    for move in (Handoff(origin, free), Release(origin, Why.HANDOFF)):
        await world.store.move(move, ann)


async def test_limits_of_children(engine: Engine, where: str) -> None:
    world = await World.open(engine, where, Limits(depth=2, children=2))
    ann = await world.person("ann")
    parent = await world.renew(await world.dm(ann), ann, "go")
    deep: list[SessionId] = []
    for _ in range(2):
        child = world.store.new_session_id()
        await world.store.move(Spawn(parent if not deep else deep[-1], child), ann)
        deep.append(child)
    fresh = world.store.new_session_id()
    await refuses_move(world, Refusal.TOO_DEEP, Spawn(deep[-1], fresh), ann)
    second = world.store.new_session_id()
    await world.store.move(Spawn(parent, second), ann)
    await refuses_move(world, Refusal.TOO_MANY_CHILDREN, Spawn(parent, fresh), ann)
    await world.store.close_session(second, ann)
    await world.store.move(Spawn(parent, fresh), ann)
    await refuses(world, Refusal.TOO_MANY_CHILDREN, lambda: world.store.reopen_session(second, ann))
    await world.store.close_session(parent, ann)
    await refuses_move(world, Refusal.CLOSED, Spawn(parent, world.store.new_session_id()), ann)
    await world.close()


async def test_a_limit_on_live_sessions_stops_who_asks_for_another_and_nobody_else(engine: Engine, where: str) -> None:
    world = await World.open(engine, where, Limits(live_per_lane=2))
    ann = await world.person("ann")
    lane = await world.dm(ann)
    first = await world.renew(lane, ann, "one")
    await world.renew(lane, ann, "two")
    fresh = world.store.new_session_id()
    await refuses_move(world, Refusal.TOO_MANY_LIVE, Renew(lane, fresh), ann)
    await refuses_move(world, Refusal.TOO_MANY_LIVE, Fork(lane, first, fresh), ann)
    for why in (Why.FIRST, Why.IDLE, Why.DAILY):
        await world.store.move(Renew(lane, world.store.new_session_id(), why), ann)
    for session in await world.store.sessions(ann):
        await world.store.close_session(session.id, ann)
    await world.close()


async def test_who_speaks_for_nobody_and_where_nobody_was_is_named(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    session = await world.renew(lane, ann, "hello")
    before = await everything(world)
    fresh = world.store.new_session_id()
    for move in (Renew(NOWHERE, fresh), Resume(NOWHERE, session), Release(NOWHERE), Handoff(lane, NOWHERE)):
        with pytest.raises(Invalid, match=r"lane: .*never seen.* has never been seen"):
            await world.store.move(move, ann)
    ghost = Person(PersonId("ghost"), "", 0.0)
    with pytest.raises(Invalid, match="person: nobody is known as 'ghost'"):
        await world.store.move(Renew(lane, fresh), ghost)
    with pytest.raises(Invalid, match="person: nobody is known as 'ghost'"):
        await world.store.lane(private("somewhere"), ghost)
    assert await everything(world) == before


async def test_a_session_id_is_used_once(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    session = await world.renew(lane, ann, "hello")
    await world.store.say(session, AGENT, "hi")
    before = await everything(world)
    with pytest.raises(StoreConflict):
        await world.store.move(Renew(lane, session), ann)
    assert await everything(world) == before
