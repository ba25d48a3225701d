"""What programs do for a person, in no turn: once for a key, within that person's reach and limits."""

import asyncio

import pytest

from segue.changes.exchange import children, questions, schedules, turns
from segue.changes.exchange.asking import Asks
from segue.changes.exchange.children import Asker, Program
from segue.changes.exchange.planner import Planner
from segue.changes.people.notes import NewNote, Notebooks
from segue.core.lanes import Identity, Person
from segue.core.moves import Limits
from segue.core.people import Allowance
from segue.core.settings import AccountSettings, GatewaySettings
from segue.core.transcripts import Role
from segue.core.turns import Run, draft_of
from segue.core.values import SessionId
from segue.core.windows import ACCOUNT, PROGRAM
from segue.errors import Refusal, Refused
from tests.changes.world import World

SETTINGS = GatewaySettings(accounts={("telegram", "bot"): AccountSettings(allow=frozenset({"ann"}))})


def asker(person: Person, only: SessionId | None = None, allowance: Allowance | None = None) -> Asker:
    by = Program(Identity(PROGRAM, ACCOUNT, "token").key, allowance or Allowance(), only)
    return Asker(None, 0, person.id, person.name, "cause", "trace", by)


async def begin(world: World, by: Asker, key: str, words: str = "hello", title: str = "") -> SessionId:
    session = SessionId(world.ids())
    return await world.store.driver.write(children.begin, by, key, session, title, words, world.clock())


async def refused(world: World, by: Asker, label: str, session: str = "") -> Refusal:
    with pytest.raises(Refused) as error:
        await world.store.driver.read(children.find, by, label, session)
    return error.value.why


async def test_a_conversation_is_begun_once_for_a_key_in_its_persons_own_words(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    write, read = world.store.driver.write, world.store.driver.read
    session = await begin(world, asker(ann), "one", "plan the trip", "Trip")
    assert await begin(world, asker(ann), "one", "plan the trip", "Trip") == session
    assert await world.count("turns") == 1
    other = await begin(world, asker(ann), "two")
    sent = [
        await write(children.send, asker(ann), "three", session, "and back", None, Limits(), world.clock())
        for _ in range(2)
    ]
    assert sent[0].turn == sent[1].turn == 2
    run = await claimed(world, session)
    author = draft_of(run.turns[0]).author
    assert (author.role, author.person) == (Role.PERSON, ann.id)
    assert await read(children.find, asker(ann), "trip", "") == session
    assert {one.id for one in await read(children.others, asker(ann), 10)} == {session, other}
    assert await read(children.others, asker(bob), 10) == []
    assert await refused(world, asker(bob), "Trip") is await refused(world, asker(bob), "", "nothing")
    assert await refused(world, asker(bob), "", session) is Refusal.NOT_FOUND
    assert [one.id for one in await read(children.others, asker(ann, session), 10)] == [session]
    assert await refused(world, asker(ann, session), "", other) is Refusal.NOT_FOUND
    assert (await write(children.close, asker(ann), other, world.ids(), world.clock())).closed


async def claimed(world: World, session: SessionId) -> Run:
    runs = await world.store.driver.write(turns.claim, "here", 10)
    return next(run for run in runs if run.held.session == session)


async def test_what_programs_say_counts_and_a_limit_refuses_it_whole(world: World) -> None:
    ann = await world.person("ann")
    by = asker(ann, allowance=Allowance(messages_a_minute=2))
    await begin(world, by, "one")
    await begin(world, by, "two")
    with pytest.raises(Refused) as error:
        await begin(world, by, "three")
    assert (error.value.why, await world.count("sessions")) == (Refusal.OVER_LIMIT, 2)
    world.clock.passes(60)
    await begin(world, by, "three")


async def test_a_session_that_others_read_is_read_and_not_written_to(world: World) -> None:
    ann = await world.person("ann")
    group = await world.renew(await world.group(ann), ann, "hello everyone")
    with pytest.raises(Refused) as error:
        await world.store.driver.write(children.send, asker(ann), "k", group, "hi", None, Limits(), world.clock())
    assert error.value.why is Refusal.OTHERS_READ
    assert [e.text for e in await world.store.driver.read(children.history, asker(ann), group)] == ["hello everyone"]


async def test_work_notes_and_questions_of_programs_are_made_once(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    lane = await world.dm(ann)
    await world.renew(lane, ann, "hello")
    write, read = world.store.driver.write, world.store.driver.read
    planner, by = Planner([("telegram", "bot")], SETTINGS), asker(ann)
    plan, to = planner.plan("in 2h", world.clock()), f"telegram:{lane.address.chat}"
    made = [await write(planner.make, by, "k", plan, "look", to, world.ids(), world.clock()) for _ in range(2)]
    assert made[0] == made[1]
    assert await world.count("sessions") == 2
    assert (await read(planner.known, by), await read(planner.known, asker(bob))) == ([made[0]], [])
    with pytest.raises(Refused):
        await write(planner.cancel, asker(bob), made[0].id, world.clock())
    assert len(await read(schedules.owned, ann.id)) == 1
    books = Notebooks(SETTINGS)
    for _ in range(2):
        await write(books.write, by, NewNote("", "likes cats", "", "call", world.ids()), world.clock())
    assert [note.text for note in await read(books.read, by, "")] == ["likes cats"]
    assert await read(books.read, asker(bob), "") == []
    asks = Asks({("telegram", "bot"): object()}, SETTINGS)  # type: ignore[dict-item]
    asking = asks.wanted(("", ""), "q", "Which day?", ("Monday", "Tuesday"), "")
    for _ in range(2):
        await write(asks.ask_for_program, ann.id, None, asking, "same", world.clock())
    for where, is_here in ((lane, True), (await world.group(ann), False)):
        [(question, here)] = await read(questions.open_to, ann.id, where, world.clock())
        assert (question.words, here) == ("Which day?", is_here)
    assert await read(questions.open_to, bob.id, lane, world.clock()) == []


async def test_the_same_call_at_once_is_one_call(world: World) -> None:
    ann = await world.person("ann")
    lane = await world.dm(ann)
    await world.renew(lane, ann, "hello")
    write, planner = world.store.driver.write, Planner([("telegram", "bot")], SETTINGS)
    assert len(set(await asyncio.gather(*(begin(world, asker(ann), "one") for _ in range(4))))) == 1
    plan, to = planner.plan("in 2h", world.clock()), f"telegram:{lane.address.chat}"
    at = world.clock()
    made = await asyncio.gather(
        *(write(planner.make, asker(ann), "k", plan, "look", to, world.ids(), at) for _ in range(4))
    )
    assert len({schedule.id for schedule in made}) == 1
    asks = Asks({("telegram", "bot"): object()}, SETTINGS)  # type: ignore[dict-item]
    asking = asks.wanted(("", ""), "q", "Which day?", (), "")
    asked = await asyncio.gather(*(write(asks.ask_for_program, ann.id, None, asking, "same", at) for _ in range(4)))
    assert {one.id for one in asked} == {"same"}
    assert [await world.count(table) for table in ("sessions", "schedules", "questions", "deliveries")] == [3, 1, 1, 1]
