"""Sessions as people find them: lists, pages, and the numbers of a list that was shown."""

import pytest

from segue.changes.sessions import sessions
from segue.core.lanes import Person
from segue.core.moves import Renew, Resume
from segue.core.values import PersonId, SessionId
from segue.errors import Invalid, Refused
from tests.changes.world import World, public


async def test_a_persons_sessions_are_listed_last_used_first_without_empty_ones(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    lane = await world.dm(ann)
    first, second = await world.renew(lane, ann, "one"), await world.renew(lane, ann, "two")
    await world.renew(lane, ann)
    await world.renew(await world.dm(bob), bob, "not hers")
    assert [s.id for s in await world.store.sessions(ann)] == [second, first]
    world.clock.passes(1)
    await world.store.say(first, ann, "again")
    assert [s.id for s in await world.store.sessions(ann)] == [first, second]


async def test_of_a_persons_open_sessions_those_beyond_so_many_are_unused_unless_at_work(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    lane = await world.dm(ann)
    closed, old, busy, *_ = [await world.renew(lane, ann, str(n)) for n in range(5)]
    await world.renew(await world.dm(bob), bob, "not hers")
    await world.store.close_session(closed, ann)
    await world.raw("update sessions set tail = 1 where id = $1", busy)
    assert await world.store.driver.read(sessions.unused, ann.id, 2) == [old]
    assert await world.store.driver.read(sessions.unused, ann.id, 4) == []


async def test_a_message_that_waits_makes_a_session_not_empty(world: World) -> None:
    queued = await world.hear("ann", "hello")
    ann = await world.person("ann")
    assert [s.id for s in await world.store.sessions(ann)] == [queued.session]


async def test_a_branch_has_the_past_of_its_source_and_is_not_empty(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    source = await world.renew(lane, ann, "one")
    fork = await world.fork(lane, source, ann)
    assert [s.id for s in await world.store.sessions_here(lane)] == [source, fork]
    assert [s.id for s in await world.store.sessions(ann)] == [fork, source]


async def test_pages_follow_each_other_also_for_sessions_of_the_same_moment(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    made = set()
    for _ in range(7):
        session = world.store.new_session_id()
        await world.store.move(Renew(lane, session), ann)
        await world.store.say(session, ann, "same moment")
        made.add(session)
    found: list[SessionId] = []
    page = await world.store.sessions(ann, 3)
    while page:
        found += [session.id for session in page]
        page = await world.store.sessions(ann, 3, before=page[-1])
    assert len(found) == 7
    assert set(found) == made


async def test_sessions_since_a_moment(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    await world.renew(lane, ann, "old")
    since = world.clock.passes(100)
    recent = await world.renew(lane, ann, "recent")
    assert [s.id for s in await world.store.sessions(ann, since=since)] == [recent]


async def test_a_lanes_sessions_are_the_newest_in_the_order_in_which_they_came(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    made = [await world.renew(lane, ann, str(n)) for n in range(5)]
    await world.resume(lane, made[0], ann)
    assert [s.id for s in await world.store.sessions_here(lane)] == made
    assert [s.id for s in await world.store.sessions_here(lane, 2)] == made[-2:]
    await world.store.close_session(made[3], ann)
    assert [s.id for s in await world.store.sessions_here(lane)] == [*made[:3], made[4]]


async def test_a_number_opens_the_line_that_was_shown_whatever_changed_meanwhile(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    made = [await world.renew(lane, ann, str(n)) for n in range(4)]
    shown = await world.store.sessions(ann)
    await world.store.show_list(lane, ann, shown)
    await world.store.say(made[0], ann, "now the newest")
    await world.renew(lane, ann, "newer still")
    await world.store.close_session(made[1], ann)
    assert [await world.store.line(lane, ann, n) for n in (1, 2, 3, 4)] == [session.id for session in shown]
    for number in (0, 5, -1, 10**30):
        with pytest.raises(Refused, match="no such line"):
            await world.store.line(lane, ann, number)


async def test_each_person_lane_and_kind_of_list_has_its_own_numbers(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    lane, other = await world.thread(ann), await world.dm(ann)
    one, two = await world.renew(lane, ann, "one"), await world.renew(lane, bob, "two")
    here = await world.store.sessions_here(lane)
    await world.store.show_list(lane, ann, here)
    await world.store.show_list(lane, bob, here[::-1])
    await world.store.show_list(lane, ann, here[::-1], "sessions")
    assert await world.store.line(lane, ann, 1) == one
    assert await world.store.line(lane, bob, 1) == two
    assert await world.store.line(lane, ann, 1, "sessions") == two
    with pytest.raises(Refused):
        await world.store.line(other, ann, 1)
    await world.store.show_list(lane, ann, here[::-1])
    assert await world.store.line(lane, ann, 1) == two
    with pytest.raises(Invalid, match="person: nobody is known as 'ghost'"):
        await world.store.show_list(lane, Person(PersonId("ghost"), "", 0.0), here)


async def test_several_conversations_in_one_flat_chat(world: World) -> None:
    ann = await world.person("ann")
    await world.hear("ann", "first", public())
    lane = await world.group(ann)
    first = await world.store.bound(lane)
    assert first is not None
    second = await world.renew(lane, ann, "second")
    listed = await world.store.sessions_here(lane)
    await world.store.show_list(lane, ann, listed, "sessions")
    await world.store.move(Resume(lane, await world.store.line(lane, ann, 1, "sessions")), ann)
    now = await world.store.bound(lane)
    assert now is not None
    assert now.id == first.id
    await world.store.close_session(await world.store.line(lane, ann, 2, "sessions"), ann)
    assert [s.id for s in await world.store.sessions_here(lane)] == [first.id]
    assert await world.said(second) == ["second"]
