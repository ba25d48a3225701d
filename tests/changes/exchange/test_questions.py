"""Questions: one at a time in a lane, answered once, and only for so long."""

from segue.changes.exchange import questions
from segue.changes.exchange.questions import LIFETIME, Posed
from segue.core.lanes import Lane
from segue.core.questions import Question, QuestionState
from segue.core.values import PersonId
from tests.changes.world import World, private


async def asked(world: World, body: str = "b") -> tuple[Lane, PersonId]:
    """Ann is asked something in her private chat."""
    queued = await world.hear("ann", "hello", private("here"))
    who = queued.met.person.id
    await world.store.driver.write(
        questions.ask, queued.lane, who, Posed.by_command(world.ids(), "readers", body, "?"), world.clock()
    )
    return queued.lane, who


async def last(world: World, lane: Lane, person: PersonId) -> Question:
    found = await world.store.driver.read(questions.last, lane, person)
    assert found is not None
    return found


async def test_a_question_is_answered_once_and_by_nobody_else(world: World) -> None:
    lane, ann = await asked(world)
    bob = (await world.hear("bob", "hello", private("there"))).met.person.id
    assert await world.store.driver.read(questions.last, lane, bob) is None
    question = await last(world, lane, ann)
    assert (question.kind, question.body, question.open(world.clock())) == ("readers", "b", True)
    assert await world.store.driver.write(questions.answer, question, "yes", "Ann", world.ids(), world.clock())
    assert not await world.store.driver.write(questions.answer, question, "no", "Ann", world.ids(), world.clock())
    again = await last(world, lane, ann)
    assert (again.answer, again.open(world.clock()), again.expired(world.clock())) == ("yes", False, False)


async def test_a_question_ends_with_its_time_whether_or_not_anybody_swept(world: World) -> None:
    lane, ann = await asked(world)
    question = await last(world, lane, ann)
    at = question.deadline
    assert question.open(at)
    assert not question.expired(at)
    assert not question.open(at + 1)
    assert question.expired(at + 1)
    await world.store.driver.write(questions.expire, at)
    assert (await last(world, lane, ann)).open(at)
    await world.store.driver.write(questions.expire, at + 1)
    swept = await last(world, lane, ann)
    assert (swept.state, swept.expired(at + 1)) == (QuestionState.EXPIRED, True)
    assert not await world.store.driver.write(questions.answer, question, "yes", "Ann", world.ids(), at + 1)
    assert at == world.clock() + LIFETIME


async def test_a_new_question_takes_the_place_of_the_old_one(world: World) -> None:
    lane, ann = await asked(world, "answered")
    answered = await last(world, lane, ann)
    assert await world.store.driver.write(questions.answer, answered, "yes", "Ann", world.ids(), world.clock())
    world.clock.passes(1)
    await asked(world, "old")
    first = await last(world, lane, ann)
    await asked(world, "new")
    assert (await last(world, lane, ann)).body == "new"
    states = [(await world.store.driver.read(questions.read, each.id)).state for each in (answered, first)]
    assert states == [QuestionState.ANSWERED, QuestionState.WITHDRAWN]
    assert not await world.store.driver.write(questions.answer, first, "yes", "Ann", world.ids(), world.clock())
