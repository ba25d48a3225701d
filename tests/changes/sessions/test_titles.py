"""Titles: per owner, found without regard to case, numbered by lineage."""

import asyncio

import pytest

from segue.core.lanes import Person
from segue.core.values import SessionId
from segue.errors import Invalid, Refused
from tests.changes.world import World


async def entitled(world: World, person: Person, *titles: str) -> list[SessionId]:
    """A session for each title."""
    lane = await world.dm(person)
    sessions = []
    for title in titles:
        sessions.append(await world.renew(lane, person, "hello"))
        await world.store.set_title(sessions[-1], title, person)
    return sessions


async def title_of(world: World, session: SessionId, person: Person) -> str:
    return (await world.store.session(session, person)).title


async def test_a_name_that_was_used_takes_the_next_number(world: World) -> None:
    ann = await world.person("ann")
    first, second, third = await entitled(world, ann, "plan", "plan", "plan")
    assert [await title_of(world, s, ann) for s in (first, second, third)] == ["plan #1", "plan #2", "plan #3"]
    assert await world.store.find("plan", ann) == third
    assert await world.store.find("plan #2", ann) == second
    assert await world.store.find("plan #1", ann) == first


async def test_a_title_is_found_without_regard_to_case_as_it_is_written_first(world: World) -> None:
    ann = await world.person("ann")
    shout, street, words = await entitled(world, ann, "PLAN", "Straße", "می\u200cکنم")
    assert await world.store.find("plan", ann) == shout
    assert await world.store.find("STRASSE", ann) == street
    assert await world.store.find("میکنم", ann) == words
    [plan] = await entitled(world, ann, "plan")
    assert await world.store.find("plan", ann) == plan
    assert await world.store.find("PLAN", ann) == shout
    second = (await entitled(world, ann, "PLAN"))[0]
    assert await world.store.find("Plan #2", ann) == second


async def test_a_title_is_found_whole_or_not_at_all(world: World) -> None:
    ann = await world.person("ann")
    await entitled(world, ann, "50% off_x", "Straße")
    assert await world.store.find("  50%   off_x ", ann)
    for near in ("50% off.x", "50%", "%", "strase", "50% off_x #2", "' or 1=1 --", ""):
        with pytest.raises(Refused):
            await world.store.find(near, ann)


async def test_titles_of_others_are_neither_seen_nor_guessed_nor_taken(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    [mine] = await entitled(world, ann, "plan")
    with pytest.raises(Refused):
        await world.store.find("plan", bob)
    assert await world.store.nearest_title("plam", bob) is None
    [theirs] = await entitled(world, bob, "plan")
    assert await title_of(world, theirs, bob) == "plan"
    assert await world.store.find("plan", ann) == mine


async def test_the_nearest_of_ones_own_titles_is_offered(world: World) -> None:
    ann = await world.person("ann")
    await entitled(world, ann, "Quarterly report", "Holiday", "Quarterly report")
    assert await world.store.nearest_title("quartely reprot", ann) == "Quarterly report"
    assert await world.store.nearest_title("quarterly report #3", ann) == "Quarterly report #2"
    assert await world.store.nearest_title("quarterly reprt #1", ann) == "Quarterly report #1"
    assert await world.store.nearest_title("zzz", ann) is None
    assert await world.store.nearest_title("Holiday" + "!" * 1_000_000, ann) is None


async def test_the_same_title_again_changes_nothing(world: World) -> None:
    ann = await world.person("ann")
    first, second = await entitled(world, ann, "plan", "plan")
    assert str(await world.store.set_title(first, " plan ", ann)) == "plan #1"
    assert str(await world.store.set_title(second, "plan", ann)) == "plan #2"
    assert await world.count("titles") == 2


async def test_a_title_that_was_given_up_is_free_and_kept_in_the_past(world: World) -> None:
    ann = await world.person("ann")
    first, second = await entitled(world, ann, "plan", "plan")
    await world.store.set_title(second, "other", ann)
    assert await world.store.find("plan", ann) == first
    assert await title_of(world, first, ann) == "plan"
    [third] = await entitled(world, ann, "plan")
    assert await title_of(world, third, ann) == "plan #2"
    past = await world.raw("select session, name, number from titles where until is not null")
    assert past == [(second, "plan", 2)]


async def test_a_branch_with_the_name_of_its_source_is_the_next_of_the_lineage(world: World) -> None:
    ann = await world.person("ann")
    [source] = await entitled(world, ann, "plan")
    fork = await world.fork(await world.dm(ann), source, ann, title="plan")
    assert await title_of(world, fork, ann) == "plan #2"
    silent = await world.fork(await world.dm(ann), source, ann)
    assert await title_of(world, silent, ann) == ""


@pytest.mark.parametrize("title", ["", " \n ", "1234", "x" * 101, "plan #2", "\N{ZERO WIDTH SPACE}"])
async def test_a_title_that_cannot_be_kept_is_refused_and_named(world: World, title: str) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    session = await world.renew(lane, ann, "hello")
    with pytest.raises(Invalid) as invalid:
        await world.store.set_title(session, title, ann)
    assert invalid.value.field == "title"
    if title:
        with pytest.raises(Invalid, match="title: "):
            await world.fork(lane, session, ann, title=title)
    assert await world.count("titles") == 0
    assert await world.count("sessions") == 1


async def test_many_sessions_named_alike_at_once_get_different_numbers(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    sessions = [await world.renew(lane, ann, "hello") for _ in range(8)]
    other = await world.beside()
    stores = (world.store, other.store)
    given = await asyncio.gather(*(stores[i % 2].set_title(s, "plan", ann) for i, s in enumerate(sessions)))
    assert sorted(title.number for title in given) == list(range(1, 9))
    assert {s.title for s in await world.store.sessions(ann)} == {f"plan #{n}" for n in range(1, 9)}


async def test_one_session_named_differently_at_once_has_one_title(world: World) -> None:
    ann = await world.person("ann")
    session = await world.renew(await world.dm(ann), ann, "hello")
    other = await world.beside()
    stores = (world.store, other.store)
    await asyncio.gather(*(stores[i % 2].set_title(session, f"name {'abcdef'[i]}", ann) for i in range(6)))
    assert await title_of(world, session, ann) in {f"name {letter}" for letter in "abcdef"}
    assert await world.raw("select count(*) from titles where until is null") == [(1,)]
    assert await world.count("titles") == 6
