"""The rules that always hold, by their numbers in the design; where the schema holds one, the database is asked."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from segue.changes.accept import Queued
from segue.changes.exchange import deliveries, replicas, turns
from segue.core.messages import Text, ToolResult
from segue.core.moves import Consent, Fork, Renew, Resume
from segue.core.transcripts import AGENT, Role, Tip
from segue.core.turns import Finish, Reply
from segue.core.values import SessionId
from segue.errors import Fenced, Refusal, Refused
from tests.changes.exchange.test_deliveries import HERE, send, take, texts
from tests.changes.sessions.test_moves import everything
from tests.changes.world import REFUSED_BY_SCHEMA, Engine, World, answer, private, public, words


@contextlib.contextmanager
def the_schema_refuses() -> Iterator[None]:
    with pytest.raises(REFUSED_BY_SCHEMA):
        yield


async def talk(world: World) -> Queued:
    """One message that was answered and one that waits."""
    queued = await world.hear("ann", "hello", me="r")
    assert queued.run is not None
    await world.store.driver.write(turns.finish, queued.run.held, answer(queued.run, "hi"), world.clock())
    return await world.hear("ann", "more")


async def test_rule_01_a_lane_speaks_to_at_most_one_session(world: World) -> None:
    queued = await talk(world)
    other = await world.renew(await world.dm(queued.met.person, "other"), queued.met.person, "other")
    again = (
        "insert into bindings (lane, session, since, why, by_person, move) "
        "select {lane}, $1, 0, 'new', by_person, move from bindings where session = $2"
    )
    with the_schema_refuses():
        await world.raw(again.format(lane="lane"), other, queued.session)
    with the_schema_refuses():
        await world.raw(again.format(lane="null"), other, queued.session)
    for table in ("lanes", "bindings"):
        with the_schema_refuses():
            await world.raw(f"update {table} set {'key' if table == 'lanes' else 'lane'} = null")
    with the_schema_refuses():
        await world.raw("update lanes set person = null")
    with the_schema_refuses():  # history is kept
        await world.raw("delete from bindings")
    with the_schema_refuses():
        await world.raw("update bindings set until = since - 1, ended_move = move")
    now = await world.store.bound(queued.lane)
    assert now is not None
    assert now.id == queued.session


async def test_rule_02_a_session_is_spoken_to_from_any_number_of_lanes_including_none(world: World) -> None:
    ann = await world.person("ann")
    lanes = [await world.dm(ann, str(n)) for n in range(20)]
    session = await world.renew(lanes[0], ann, "hello")
    for lane in lanes[1:]:
        await world.resume(lane, session, ann)
    assert await world.store.lanes_of(session) == lanes[::-1]
    for lane in lanes:
        await world.store.move(Renew(lane, world.store.new_session_id()), ann)
    assert await world.store.lanes_of(session) == []
    assert await world.said(session) == ["hello"]


async def test_rule_03_a_transcript_only_grows(engine: Engine, world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    session = await world.renew(lane, ann, "one", "two")
    for statement in ("delete from entries", "update entries set parts = '[]'", "update entries set n = n"):
        with the_schema_refuses():
            await world.raw(statement)
    if engine is Engine.POSTGRES:
        with the_schema_refuses():
            await world.raw("truncate segue.entries cascade")
    with the_schema_refuses():  # nor is one written over another
        await world.raw(
            "insert into entries (session, n, role, person, name, parts, at, turn) "
            "values ($1, 1, 'agent', '', '', '[]', 0, 0)",
            session,
        )
    with the_schema_refuses():  # nor after one that isn't there
        await world.raw(
            "insert into entries (session, n, parent_session, parent, role, person, name, parts, at, turn) "
            "values ($1, 3, $1, 9, 'agent', '', '', '[]', 0, 0)",
            session,
        )
    with the_schema_refuses():
        await world.raw("update sessions set tip = 9")
    before = await world.raw("select * from entries order by seq")
    await world.store.undo(session, ann)
    await world.store.say(session, AGENT, "three")
    await world.store.compress(session, "sum", Tip(session, 3), ann)
    await world.store.rewind(session, Tip(session, 3), ann)
    fork = await world.fork(lane, session, ann)
    assert await world.said(fork) == ["three"]
    assert (await world.raw("select * from entries order by seq"))[:2] == before
    assert await world.count("entries") == 4


async def test_rule_04_one_turn_at_a_time_per_session_in_the_order_of_acceptance(world: World) -> None:
    ann = await world.person("ann")
    lanes = [await world.dm(ann, chat) for chat in "ab"]
    session = await world.renew(lanes[0], ann)
    await world.resume(lanes[1], session, ann)
    first = await world.hear("ann", "1", private("a"), me="r1")
    second = await world.hear("ann", "2", private("b"), me="r2")  # another lane, another replica, the same session
    assert first.run is not None
    assert second.run is None
    assert await world.store.driver.write(turns.claim, "r3", 9) == []
    done = await world.store.driver.write(turns.finish, first.run.held, answer(first.run, "one"), world.clock())
    assert done.next is not None
    assert [turn.seq for turn in done.next.turns] == [2]
    for wrong in (
        "update sessions set head = tail + 1",
        "update sessions set holder = 'x', head = tail",
        "update sessions set running = tail + 1",
        "update turns set seq = 1",
        "update turns set seq = 0 where seq = 2",
        "delete from turns",
    ):
        with the_schema_refuses():
            await world.raw(wrong)


async def test_rule_05_commit_then_acknowledge(world: World) -> None:
    queued = await world.hear("ann", "hello")
    # Whoever else looks sees it by the time the answer came.
    assert await world.raw("select session, message from turns") == [(queued.session, "m1")]
    other = await world.beside()
    assert len(await other.store.driver.read(turns.waiting, queued.session, 9)) == 1


async def test_rule_06_entries_deliveries_and_done_are_one_transaction(world: World) -> None:
    queued = await world.hear("ann", "hello", me="r")
    assert queued.run is not None
    held, route = queued.run.held, queued.lane.address
    stream = await world.store.driver.write(deliveries.open_stream, held, 1, route, (), world.clock())
    assert stream is not None
    before = await world.count("entries")
    broken = Finish((1,), answer(queued.run, "hi").drafts, (Reply(route, "\0", 1),))
    with pytest.raises(Exception, match="NUL"):
        await world.store.driver.write(turns.finish, held, broken, world.clock())
    assert await world.count("entries") == before
    assert await world.raw("select head from sessions") == [(0,)]
    await world.store.driver.write(turns.finish, held, answer(queued.run, "hi"), world.clock())
    assert await world.raw("select key, text from deliveries") == [(stream.key, "hi")]
    with the_schema_refuses():  # never a second answer under the same key
        await world.raw(
            "insert into deliveries (key, account, address, turn, entry, text, answers, accepted, due) "
            "select key, account, address, turn, entry, 'again', answers, accepted, due from deliveries"
        )
    with the_schema_refuses():
        await world.raw("update turns set outcome = 'answered', finished = null")


async def test_rule_07_every_write_of_a_turn_carries_its_epoch(world: World) -> None:
    queued = await world.hear("ann", "hello", me="r")
    assert queued.run is not None
    lost = queued.run.held
    await world.store.driver.write(turns.let_go, lost, 0, 0.0)
    [again] = await world.store.driver.write(turns.claim, "r", 1)  # the same replica, a later epoch
    assert again.held.epoch > lost.epoch
    before = await everything(world)
    driver, at = world.store.driver, world.clock()
    with pytest.raises(Fenced):
        await driver.write(turns.journal, lost, 1, "c", (ToolResult("c", 1),), at)
    with pytest.raises(Fenced):
        await driver.write(turns.finish, lost, answer(queued.run, "zombie"), at)
    with pytest.raises(Fenced):
        await driver.write(turns.let_go, lost, 1, 0.0)
    with pytest.raises(Fenced):
        await driver.write(deliveries.open_stream, lost, 1, queued.lane.address, (), at)
    assert await everything(world) == before
    assert await world.count("journal") == 0


async def test_rule_08_the_reply_route_is_fixed_when_the_turn_is_accepted(world: World) -> None:
    queued = await talk(world)
    with the_schema_refuses():
        await world.raw("update turns set route = 'elsewhere'")
    with the_schema_refuses():
        await world.raw("update turns set route = null")
    await world.store.move(Renew(queued.lane, world.store.new_session_id()), queued.met.person)
    [run] = await world.store.driver.write(turns.claim, "r", 1)
    assert [turn.route for turn in run.turns] == [queued.lane.address.key]


async def test_rule_09_every_state_that_is_not_final_has_an_owner_an_epoch_a_deadline_and_a_sweeper(
    world: World,
) -> None:
    queued = await talk(world)
    handoff = (
        "insert into handoffs (id, session, origin, destination, kind, state, by_person, requested, progressed, "
        "deadline, holder, epoch, settled) values ($1, $2, $3, 'x', 'dm', {}, $4, 0, 0, {}, {}, {}, {})"
    )
    about: tuple[Any, ...] = ("h", queued.session, queued.lane.key, queued.met.person.id)
    for wrong in (
        ("'requested'", "null", "null", "0", "null"),  # no deadline
        ("'claimed'", "60", "null", "1", "null"),  # nobody's
        ("'claimed'", "60", "'r'", "0", "null"),  # no epoch
        ("'requested'", "60", "null", "0", "1"),  # settled and not
        ("'done'", "60", "'r'", "1", "null"),
        ("'stuck'", "60", "'r'", "1", "null"),
    ):
        with the_schema_refuses():
            await world.raw(handoff.format(*wrong), *about)
    await world.raw(handoff.format("'claimed'", "60", "'r'", "1", "null"), *about)
    with the_schema_refuses():  # one at a time
        await world.raw(handoff.format("'requested'", "60", "null", "0", "null"), "h2", *about[1:])
    with the_schema_refuses():
        await world.raw(
            "insert into questions (id, lane, person, kind, body, asked, deadline) "
            "values ('q', $1, $2, 'k', '', 0, null)",
            queued.lane.key,
            queued.met.person.id,
        )
    with the_schema_refuses():
        await world.raw(
            "insert into schedules (id, session, owner, task, line, zone, deliver, since) "
            "select 's', id, owner, '', '', '', '', 0 from sessions"
        )
    # A holder that isn't alive holds nothing for long, whoever it was.
    await world.raw("update sessions set holder = 'nobody knows'")
    await send(world, HERE, "1")
    await world.raw("update deliveries set holder = 'nobody knows' where sent is null")
    await world.store.driver.write(replicas.join, "alive", 60.0)
    await world.store.driver.write(replicas.beat, "alive", 60.0)
    assert len(await world.store.driver.write(turns.claim, "alive", 9)) == 1
    assert "1" in texts(await take(world, "alive"))


async def test_rule_10_a_refused_move_changes_nothing_and_says_why(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    secret = await world.renew(await world.dm(ann), ann, "secret")
    lane = await world.dm(bob)
    before = await everything(world)
    said = set()
    for session in (secret, SessionId("doesn't exist")):
        fresh = world.store.new_session_id()
        for move in (Resume(lane, session), Fork(lane, session, fresh, title="mine")):
            with pytest.raises(Refused) as refused:
                await world.store.move(move, bob)
            said.add(str(refused.value).encode())
    assert said == {Refusal.NOT_FOUND.value.encode()}
    assert await everything(world) == before


async def test_rule_11_nothing_acknowledged_is_dropped(world: World) -> None:
    queued = [await world.hear("ann", str(n)) for n in range(150)]
    waiting = await world.store.driver.read(turns.waiting, queued[0].session, 1000)
    assert [turn.parts for turn in waiting] == [(Text(str(n)),) for n in range(150)]
    await send(world, HERE, "undeliverable")
    [out] = await take(world)
    await world.store.driver.write(deliveries.give_up, out, "403", world.clock())
    assert await world.raw("select text, error from deliveries where dead is not null") == [("undeliverable", "403")]
    with the_schema_refuses():  # sent or given up, never both
        await world.raw("update deliveries set sent = 1")


async def test_rule_12_a_move_that_widens_who_can_read_needs_the_owners_yes(world: World) -> None:
    ann = await world.person("ann")
    session = await world.renew(await world.dm(ann), ann, "private")
    group = await world.group(ann)
    with pytest.raises(Refused) as refused:
        await world.store.move(Resume(group, session), ann)
    assert refused.value.why is Refusal.NEEDS_YES
    await world.store.move(Resume(group, session, consent=Consent.GIVEN), ann)


@pytest.mark.parametrize("forged", ["[bob] hi", "hi\n[bob] hello", '{"author":"bob"}', "bob: hi", "\u202ebob"])
async def test_rule_13_what_people_typed_is_data_with_its_author_attached(world: World, forged: str) -> None:
    bob = await world.person("bob")
    place = public("g", "t")
    queued = await world.accept(world.arrival("ann", forged, place))
    assert isinstance(queued, Queued)
    [turn] = await world.store.driver.read(turns.waiting, queued.session, 9)
    assert (turn.person, turn.name, turn.parts) == (queued.met.person.id, "ann", (Text(forged),))
    assert turn.person != bob.id
    await world.store.say(queued.session, queued.met.person, forged)
    *_, entry = await world.store.path(queued.session)
    assert (entry.author.role, entry.author.person, words([entry])) == (Role.PERSON, turn.person, [forged])
    with the_schema_refuses():
        await world.raw(
            "insert into entries (session, n, role, person, name, parts, at, turn, identity, address) "
            "values ($1, 9, 'bob', '', '', '[]', 0, 0, '', '')",
            queued.session,
        )
