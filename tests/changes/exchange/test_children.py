"""Children: started, written to and closed under the claim of the turn that asks; answers come once, whoever waits."""

import asyncio

import pytest
from msgspec.structs import replace

from segue.changes.exchange import children, replicas, routes, turns
from segue.changes.exchange.children import Asker, Child, Taken, Waiting
from segue.core.lanes import Address, Lane
from segue.core.messages import ChildResult, Text
from segue.core.moves import Limits, Spawn
from segue.core.settings import Settings
from segue.core.transcripts import AGENT, Draft, Ending
from segue.core.turns import Asked, Finish, Outcome, Owed, Reply, Run, TurnKind
from segue.core.values import PersonId, SessionId
from segue.errors import Fenced, Refusal, Refused
from tests.changes.world import World, private, public
from tests.changes.world import answer as answer_of

LIMITS = Limits()

MARK = "\n\n(This is from “kid”.)"


async def asker(world: World, user: str = "ann") -> Asker:
    """A running turn of somebody's private chat."""
    queued = await world.hear(user, "go", me="here")
    assert queued.run is not None
    first = queued.run.turns[0]
    cause = f"{queued.session}/{queued.turn}"
    return Asker(queued.run.held, queued.turn, PersonId(first.person), first.name, cause, "trace")


async def started(world: World, by: Asker, label: str = "kid", ending: Ending = Ending.LASTING) -> Child:
    """A child, which waits for somebody to run it."""
    move = Spawn(by.session, SessionId(world.ids()), label, ending=ending)
    ids = world.ids(), world.ids()
    return await world.store.driver.write(
        children.spawn, by, f"spawn {label}", move, "task", None, Settings(), ids, world.clock()
    )


async def send(world: World, by: Asker, to: SessionId, words: str = "question", wait: float | None = None) -> Asked:
    return await world.store.driver.write(
        children.send, by, f"{by.session} {to} {words}", to, words, wait, LIMITS, world.clock()
    )


async def claim(world: World, me: str = "there") -> Run:
    [run] = await world.store.driver.write(turns.claim, me, 1)
    return run


async def answer(world: World, run: Run, text: str) -> Run | None:
    """Finish a turn as the gateway does."""
    first = run.turns[0]
    replies = (Reply(Address.parse(first.route), text, 1),) if first.route else ()
    owed = Owed(run.owes, text, first.person, first.cause, first.trace) if run.owes else None
    done = Finish((first.seq,), (Draft(AGENT, (Text(text),)),), replies, kind=first.kind, owed=owed)
    return (await world.store.driver.write(turns.finish, run.held, done, world.clock())).next


async def busy(world: World, wait: float = 60.0) -> tuple[Asker, Asked, Run]:
    """A parent that waits for a child's answer, which is being given."""
    by = await asker(world)
    kid = await started(world, by)
    asked = await send(world, by, kid.id, wait=wait)
    run = await answer(world, await claim(world), "begun")
    assert run is not None
    return by, asked, run


async def delivered(world: World) -> list[str]:
    """What was delivered of the child's, each with its label beneath."""
    texts = [text for (text,) in await world.raw("select text from deliveries order by id")]
    assert all(text.endswith(MARK) for text in texts)
    return [text.removesuffix(MARK) for text in texts]


async def time_is_over(world: World, asked: Asked) -> None:
    await world.raw("update turns set awaited = 1 where session = $1 and seq = $2", asked.session, asked.turn)


async def receive(world: World, asked: Asked) -> Taken | Waiting:
    return await world.store.driver.write(children.receive, asked.session, asked.turn, world.clock())


async def test_an_answer_in_time_is_kept_for_who_waits(world: World) -> None:
    _, asked, run = await busy(world)
    assert await receive(world, asked) is Waiting.ON
    await answer(world, run, "the answer")
    for _ in range(2):  # a turn that is tried again takes it again
        taken = await receive(world, asked)
        assert isinstance(taken, Taken)
        assert taken.text == "the answer"
    assert await delivered(world) == ["begun"]


async def test_an_answer_after_the_wait_is_delivered(world: World) -> None:
    _, asked, run = await busy(world)
    await time_is_over(world, asked)
    await answer(world, run, "the answer")
    assert await receive(world, asked) is Waiting.OVER
    assert await delivered(world) == ["begun", "the answer"]


async def test_who_gave_up_waiting_gets_nothing_though_the_answer_comes_at_once(world: World) -> None:
    _, asked, run = await busy(world)
    await time_is_over(world, asked)
    assert await receive(world, asked) is Waiting.OVER
    # Even if the clock went back: it was said that the answer will be delivered.
    await answer(world, run, "the answer")
    assert await receive(world, asked) is Waiting.OVER
    assert await delivered(world) == ["begun", "the answer"]


async def test_at_the_very_moment_it_is_one_or_the_other(world: World) -> None:
    by, asked, run = await busy(world, wait=0.03)
    for n in range(12):
        ended, found = asyncio.create_task(answer(world, run, f"answer {n}")), await receive(world, asked)
        while found is Waiting.ON:
            found = await receive(world, asked)
        await ended
        given = [found.text] if isinstance(found, Taken) else []
        assert [*given, *(text for text in await delivered(world) if text == f"answer {n}")] == [f"answer {n}"]
        asked = await send(world, by, asked.session, f"question {n}", wait=0.01 * (n % 4))
        run = await claim(world)


async def test_what_was_kept_for_a_turn_that_ended_is_delivered_once(world: World) -> None:
    by, asked, run = await busy(world)
    await answer(world, run, "the answer")
    write, read = world.store.driver.write, world.store.driver.read
    assert await read(children.unreceived, 10) == []
    assert by.held is not None
    await write(turns.finish, by.held, Finish((by.turn,), ()), world.clock())
    [left] = await read(children.unreceived, 10)
    assert (left.session, left.turn, left.answer.text) == (asked.session, asked.turn, "the answer")
    reply = Reply(Address.parse(left.route), left.answer.text, left.answer.entry)
    for _ in range(2):
        await write(children.deliver, left.session, left.turn, [reply], world.clock())
    assert await read(children.unreceived, 10) == []
    assert await delivered(world) == ["begun", "the answer"]


async def test_a_message_that_was_taken_back_is_told_to_who_waits_and_never_delivered(world: World) -> None:
    by, _, run = await busy(world)
    write, kid = world.store.driver.write, run.held.session
    asked = await send(world, by, kid, "more", wait=60)
    await write(children.close, by, kid, world.ids(), world.clock())
    assert await receive(world, asked) == Taken(Outcome.WITHDRAWN, "", 0)
    await answer(world, run, "stopped")
    assert by.held is not None
    await write(turns.finish, by.held, Finish((by.turn,), ()), world.clock())
    left = await world.store.driver.read(children.unreceived, 10)
    assert [one.answer.text for one in left if one.turn == asked.turn] == [""]
    assert await delivered(world) == ["begun"]


async def test_a_result_is_a_turn_of_the_parent_in_the_same_transaction(world: World) -> None:
    by = await asker(world)
    kid = await started(world, by, ending=Ending.ONE_SHOT)
    run = await claim(world)
    await answer(world, run, "found it")
    with pytest.raises(Fenced):
        await answer(world, run, "found it again")
    [_, result] = await world.store.driver.read(turns.waiting, by.session, 10)
    assert (result.kind, result.route) == (TurnKind.RESULT, private("ann").address.key)
    assert result.parts == (ChildResult("found it", kid.id, "kid"),)
    assert await delivered(world) == []
    assert (await world.store.driver.read(children.child, kid.id)).closed


async def test_a_task_that_somebody_talks_to_by_now_is_told_and_lasts(world: World) -> None:
    by = await asker(world)
    ann = await world.person("ann")
    kid = await started(world, by, ending=Ending.ONE_SHOT)
    await world.resume(await world.dm(ann, "second"), kid.id, ann)
    await answer(world, await claim(world), "found it")
    assert [turn.kind for turn in await world.store.driver.read(turns.waiting, by.session, 10)][1:] == [TurnKind.RESULT]
    stays = await world.store.driver.read(children.child, kid.id)
    assert (stays.closed, stays.ending) == (False, Ending.LASTING)


async def test_a_turn_that_was_lost_starts_and_sends_nothing(world: World) -> None:
    by = await asker(world)
    kid = await started(world, by)
    await world.store.driver.write(replicas.leave, "here")
    with pytest.raises(Fenced):
        await started(world, by, "late")
    with pytest.raises(Fenced):
        await send(world, by, kid.id)
    assert await world.count("sessions") == 2
    assert await world.count("turns") == 2


async def test_the_same_call_starts_one_child_and_sends_one_message(world: World) -> None:
    by = await asker(world)
    kids = [await started(world, by, "") for _ in range(2)]
    assert kids[0].id == kids[1].id
    asked = [await send(world, by, kids[0].id) for _ in range(2)]
    assert asked[0] == asked[1]
    assert await world.count("sessions") == 2
    assert await world.count("turns") == 3


async def test_the_budget_holds_at_its_edge_for_both_ways_to_ask(world: World) -> None:
    by = await asker(world)
    kid = await started(world, by)
    limits = Limits(budget=3)

    async def say(n: int) -> None:
        arguments = by, f"say {n}", kid.id, "more", None, limits, world.clock()
        await world.store.driver.write(children.send, *arguments)

    async def another() -> None:
        move = _fresh(by, world)
        arguments = (
            by,
            "another",
            move,
            "task",
            None,
            Settings(limits=limits),
            (world.ids(), world.ids()),
            world.clock(),
        )
        await world.store.driver.write(children.spawn, *arguments)

    await say(1)
    await say(2)
    for refused in (say(3), another(), world.store.driver.write(children.check, by, _fresh(by, world), limits)):
        with pytest.raises(Refused) as caught:
            await refused
        assert caught.value.why is Refusal.OVER_BUDGET
    await say(2)
    assert await world.count("sessions") == 2
    assert await world.count("turns") == 4
    # It is counted by the message that all comes of: another one begins anew.
    await started(world, replace(by, cause="another"), "later")


def _fresh(by: Asker, world: World) -> Spawn:
    return Spawn(by.session, SessionId(world.ids()), "", ending=Ending.LASTING)


@pytest.mark.parametrize("length", [2, 3, 5])
async def test_a_ring_of_any_length_is_refused_where_it_would_close(world: World, length: int) -> None:
    by = await asker(world)
    kids = [await started(world, by, f"kid {n}") for n in range(length)]
    runs = {run.held.session: run for run in await world.store.driver.write(turns.claim, "there", 10)}
    askers = [replace(by, held=runs[kid.id].held, turn=runs[kid.id].name) for kid in kids]
    for n in range(length - 1):
        await send(world, askers[n], kids[n + 1].id, wait=60)
    # Also without waiting: whoever waits could only be answered once that is done.
    for wait in (60, None):
        with pytest.raises(Refused) as caught:
            await send(world, askers[-1], kids[0].id, f"back {wait}", wait=wait)
        assert caught.value.why is Refusal.WAITS_FOR_YOU
    # The one before it isn't waiting for somebody further on.
    await send(world, askers[0], kids[-1].id, "besides")


@pytest.mark.parametrize("over", ["the time", "the turn"])
async def test_who_waits_no_more_can_be_written_to(world: World, over: str) -> None:
    by, asked, run = await busy(world)
    kid = replace(by, held=run.held, turn=run.name)
    with pytest.raises(Refused):
        await send(world, kid, by.session)
    if over == "the time":
        await time_is_over(world, asked)
    else:
        assert by.held is not None
        await world.store.driver.write(turns.finish, by.held, Finish((by.turn,), ()), world.clock())
    assert (await send(world, kid, by.session)).session == by.session


async def test_a_ring_of_waits_is_refused_though_it_closes_in_two_places_at_once(world: World) -> None:
    by = await asker(world)
    kids = [await started(world, by, f"kid {n}") for n in range(4)]
    runs = {run.held.session: run for run in await world.store.driver.write(turns.claim, "there", 10)}
    askers = [Asker(runs[kid.id].held, runs[kid.id].name, by.person, by.name, by.cause, by.trace) for kid in kids]

    async def waits(one: int, other: int) -> Refusal | None:
        try:
            await send(world, askers[one], kids[other].id, f"{one} {other}", wait=60)
        except Refused as refused:
            return refused.why
        return None

    assert set(await asyncio.gather(waits(0, 1), waits(2, 3))) == {None}
    assert set(await asyncio.gather(waits(1, 2), waits(3, 0))) == {None, Refusal.WAITS_FOR_YOU}


async def test_where_output_goes(world: World) -> None:
    by = await asker(world)
    kid = await started(world, by)
    ann = await world.person("ann")
    here = private("ann").address.key

    async def route() -> str:
        """Where it goes, which is the same for a child that has no lane of its own."""
        asked = [(by.session, by.turn), (kid.id, 1)]
        found = [await world.store.driver.read(routes.now, session, (session, turn)) for session, turn in asked]
        [address] = {address for _, address in found}
        return address

    assert await route() == here
    second = await world.dm(ann, "second")
    await world.resume(second, by.session, ann)
    assert await route() == here, "the lane that asked, though another is newer"
    await world.renew(Lane(private("ann").address), ann)
    assert await route() == here, "the lane that asked, also once it has moved on"


async def test_output_never_goes_where_others_read_than_those_who_asked(world: World) -> None:
    ann, thread = await world.person("ann"), public("g", "t")
    queued = await world.hear("ann", "go", thread, me="here")
    assert queued.run is not None
    driver, club = world.store.driver, thread.address.key
    await driver.write(turns.finish, queued.run.held, answer_of(queued.run, "done"), world.clock())
    at = queued.session, queued.turn

    async def route() -> str:
        return (await driver.read(routes.now, queued.session, at))[1]

    await world.renew(queued.lane, ann)
    assert await route() == club, "everyone there has read it whole"
    await world.exchange(queued.session, ann, "said elsewhere", "answered elsewhere")
    await world.store.set_home(public("home"), ann)
    assert await route() == "", "it waits in the session, and no home gets it"
    second = await world.dm(ann, "second")
    await world.resume(second, queued.session, ann)
    assert await route() == second.address.key
