"""Contexts: a section is kept as it is until its session is spoken to from elsewhere or was summed up."""

import pytest

from segue import Consent, Person, Resume, SessionId
from segue.changes.exchange import turns
from segue.changes.sessions import contexts
from segue.changes.sessions.contexts import Basis, Composed, Context, Surroundings
from segue.core.lanes import Address, Identity, Kind, Lane, Place
from segue.core.prompt.envelopes import Voices
from segue.core.turns import Run
from segue.errors import Fenced
from segue.runtime.turns.prompt import still_holds
from tests.changes.world import World, answer, public


def compose(around: Surroundings, told: frozenset[str]) -> Composed:
    del told
    return Composed(Voices.ONE, " ".join(lane.address.chat for lane in around.lanes))


async def told(world: World, run: Run, summary: str = "", redaction: str = "none") -> Context:
    driver, asked, basis = world.store.driver, run.turns[-1], Basis(summary, redaction)
    known = await driver.read(contexts.current, run.held.session, asked)
    if known is not None and still_holds(known.context, asked, basis):
        return known.context
    made = await driver.write(contexts.renew, run.held, asked, basis, compose, world.clock())
    return made.context


async def turn(world: World, chat: str, summary: str = "", by: str = "ann", redaction: str = "none") -> Context:
    """Somebody says something, and the agent is told where it is."""
    queued = await world.hear(by, "hello", public(chat, "t"), me="r")
    assert queued.run is not None
    context = await told(world, queued.run, summary, redaction)
    await world.store.driver.write(turns.finish, queued.run.held, answer(queued.run, "hi"), world.clock())
    return context


async def resumed(world: World, chat: str, ann: Person, session: SessionId) -> Lane:
    lane = await world.thread(ann, "t", chat)
    await world.store.move(Resume(lane, session, consent=Consent.GIVEN), ann)
    return lane


async def bound(world: World, ann: Person, chat: str) -> SessionId:
    session = await world.store.bound(await world.thread(ann, "t", chat))
    assert session is not None
    return session.id


async def test_it_stays_whoever_speaks_and_whatever_the_place_is_called(world: World) -> None:
    first = await turn(world, "g")
    assert first.section == "g"
    assert await turn(world, "g", by="bob") == first
    assert await world.count("contexts") == 1


async def test_it_is_rewritten_when_somebody_comes_to_read_and_then_stays(world: World) -> None:
    ann = await world.person("ann")
    assert (await turn(world, "g")).section == "g"
    await resumed(world, "h", ann, await bound(world, ann, "g"))
    both = await turn(world, "g")
    assert both.section == "h g", "nobody has spoken from there, but everybody there reads it"
    assert [await turn(world, chat) for chat in ("h", "g", "h", "g")] == [both] * 4


async def test_going_away_and_coming_back_changes_nothing(world: World) -> None:
    ann = await world.person("ann")
    first = await turn(world, "g")
    session, lane = await bound(world, ann, "g"), await world.thread(ann, "t", "g")
    await world.renew(lane, ann)
    await world.resume(lane, session, ann)
    assert await turn(world, "g") == first


async def test_it_is_rewritten_after_a_compaction(world: World) -> None:
    first = await turn(world, "g")
    again = await turn(world, "g", summary="s/3")
    assert (again.section, again.basis.summary) == (first.section, "s/3")
    assert await turn(world, "g", summary="s/3") == again
    assert await world.count("contexts") == 2
    # Taken back, it is as if it had never been, whatever has changed since.
    await world.raw("update contexts set section = 'as it was' where summary = ''")
    assert (await turn(world, "g")).section == "as it was"
    assert (await turn(world, "g")).section == "as it was"


async def test_it_is_rewritten_once_when_the_host_hides_ids_or_shows_them(world: World) -> None:
    shown = await turn(world, "g")
    hidden = await turn(world, "g", redaction="pseudonyms")
    assert (shown.basis.redaction, hidden.basis.redaction) == ("none", "pseudonyms")
    assert await turn(world, "g", redaction="pseudonyms") == hidden
    assert await world.count("contexts") == 2


async def test_the_lane_that_a_handoff_leaves_is_not_told_of(world: World) -> None:
    ann = await world.person("ann")
    await turn(world, "g")
    session, origin = await bound(world, ann, "g"), await world.thread(ann, "t", "g")
    await world.raw(
        "insert into handoffs (id, session, origin, destination, kind, state, by_person, requested, "
        "progressed, deadline) values ('h', $1, $2, 'x', 'dm', 'requested', $3, 0, 0, 1)",
        *(session, origin.key, ann.id),
    )
    lane = await world.thread(ann, "t", "h")
    await world.raw(
        "insert into moves (id, kind, lane, by_person, at) values ('m', 'handoff', $1, $2, 0)", lane.key, ann.id
    )
    await world.raw(
        "insert into bindings (lane, session, since, why, by_person, move) values ($1, $2, 0, 'handoff', $3, 'm')",
        *(lane.key, session, ann.id),
    )
    assert (await turn(world, "h")).section == "h"


async def test_a_holder_that_was_replaced_writes_nothing(world: World) -> None:
    queued = await world.hear("ann", "hello", public("g", "t"), me="r")
    assert queued.run is not None
    await world.raw("update sessions set epoch = epoch + 1")
    with pytest.raises(Fenced):
        await told(world, queued.run)
    assert await world.count("contexts") == 0


async def test_a_chat_that_turned_out_to_have_another_id_is_no_other_place(world: World) -> None:
    first = await turn(world, "g")
    ann = await world.person("ann")
    await world.store.lane(public("first id of g", "t"), ann)
    await world.raw("update addresses set since = 0 where key like '%first id%'")
    queued = await world.hear("ann", "hello", public("g", "t"), me="r", chat_aliases=("first id of g",))
    assert queued.run is not None
    assert "first" in queued.lane.key
    assert await told(world, queued.run) == first


async def test_whom_and_where_an_agent_may_name(world: World) -> None:
    ann = await world.person("ann")
    home = Address("signal", "main", "", "home")
    await world.store.set_home(Place(home, Kind.GROUP), ann)
    await turn(world, "g", by="bob")
    session = await bound(world, ann, "g")
    spots = await world.store.driver.read(contexts.nameable, session)
    there = public("g", "t").address
    assert set(spots) == {home, there, Identity(there.platform, there.account, "bob")}
    # What was said before a fork is part of it, and so is who said it.
    bob = await world.person("bob")
    fork = await world.fork(await world.dm(bob), session, bob)
    spots = await world.store.driver.read(contexts.nameable, fork)
    assert {there, Identity(there.platform, there.account, "bob")} < set(spots)
