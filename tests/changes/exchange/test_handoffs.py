"""Handoffs in the store: fenced at each step, and done or undone on both sides in one transaction."""

import asyncio

import pytest

from segue.changes.exchange import deliveries, handoffs, replicas, turns
from segue.core.handoffs import Driven, HandoffProgress, HandoffRecord, Patience, State, deadline
from segue.core.lanes import Kind, Lane, Person, Place, Rules
from segue.core.messages import Opening, Outgoing
from segue.core.moves import Limits, Renew
from segue.core.turns import Finish, Outcome, Run
from segue.core.values import SessionId
from segue.errors import Fenced, Refusal, Refused
from tests.changes.world import World, answer, private, public

PATIENCE = Patience()
SEQUEL = handoffs.OpeningSequel(PATIENCE)


class House:
    """Somebody with a session on a laptop and another on a phone."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ann: Person
        self.laptop: Lane
        self.phone: Lane
        self.session: SessionId
        self.former: SessionId

    async def furnish(self) -> "House":
        world = self.world
        self.ann = await world.person("ann")
        self.laptop, self.phone = [await world.dm(self.ann, chat) for chat in ("laptop", "phone")]
        self.session = await world.renew(self.laptop, self.ann, "cats", "cats!")
        self.former = await world.renew(self.phone, self.ann, "before")
        await world.store.driver.write(replicas.join, "me", 1e6)
        return self

    async def request(self, id: str = "h") -> HandoffRecord:
        args = id, self.session, self.laptop, private("phone"), self.ann.id, PATIENCE, self.world.clock()
        return await self.world.store.driver.write(handoffs.request, *args)

    async def claim(self, id: str = "h", me: str = "me") -> Driven:
        driven = await self.world.store.driver.write(handoffs.claim, id, me, PATIENCE, self.world.clock())
        assert driven is not None
        return driven

    async def open(self, driven: Driven, place: Place | None = None) -> Lane:
        there = place or private("phone")
        args = driven, there, Rules(), Limits(), PATIENCE, Opening("Terminal", "Telegram"), self.world.clock()
        return await self.world.store.driver.write(handoffs.open_in, *args)

    async def opening(self) -> Run:
        """The opening turn, claimed."""
        [run] = await self.world.store.driver.write(turns.claim, "me", 10)
        return run

    async def finish(self, run: Run, done: Finish) -> None:
        await self.world.store.driver.write(SEQUEL.finish, run.held, done, self.world.clock())

    async def outgoing(self) -> Outgoing:
        """The opening's message, taken to be sent."""
        taken = await self.world.store.driver.write(deliveries.outgoing, "me", "telegram", "bot", 10)
        return next(held for held in taken if held.sequel)

    async def answered(self) -> Outgoing:
        """All but the last step."""
        await self.request()
        await self.open(await self.claim())
        run = await self.opening()
        await self.finish(run, answer(run, "here"))
        return await self.outgoing()

    async def sent(self, held: Outgoing) -> None:
        await self.world.store.driver.write(SEQUEL.sent, held, "m1", self.world.clock())

    async def bound(self) -> tuple[SessionId | None, SessionId | None]:
        """What the laptop and the phone speak to."""
        found = [await self.world.store.bound(lane) for lane in (self.laptop, self.phone)]
        return found[0].id if found[0] else None, found[1].id if found[1] else None

    async def state(self, id: str = "h") -> State:
        return (await self.world.store.driver.read(handoffs.read, id)).state


@pytest.fixture
async def house(world: World) -> House:
    return await House(world).furnish()


async def test_it_is_done_when_its_message_was_sent_and_not_before(house: House) -> None:
    held = await house.answered()
    assert await house.bound() == (house.session, house.session)
    assert await house.state() is State.CLAIMED
    await house.sent(held)
    assert await house.bound() == (None, house.session)
    assert await house.state() is State.DONE


async def test_people_are_told_how_far_it_is(house: House) -> None:
    async def step() -> HandoffProgress:
        return (await house.world.store.driver.read(handoffs.read, "h")).progress

    write, clock = house.world.store.driver.write, house.world.clock
    await house.request()
    assert await step() is HandoffProgress.REQUESTED
    driven = await house.claim()
    assert await step() is HandoffProgress.CLAIMED
    await house.open(driven)
    assert await step() is HandoffProgress.OPENED
    run = await house.opening()
    await write(SEQUEL.grew, run.held.session, run.name, clock())
    assert await step() is HandoffProgress.WRITING
    house.world.clock.passes(PATIENCE.progress - 1)
    await house.finish(run, answer(run, "here"))
    assert await step() is HandoffProgress.SENDING
    # What was just answered has all the time again, as far as the handoff as a whole has any.
    known = await house.world.store.driver.read(handoffs.read, "h")
    assert known.deadline == deadline(known.requested, clock(), PATIENCE)
    await house.sent(await house.outgoing())
    assert await step() is HandoffProgress.ENDED


async def test_what_ended_can_never_complete(house: House) -> None:
    held = await house.answered()
    write, clock = house.world.store.driver.write, house.world.clock
    before = (await house.world.store.session(house.session, house.ann)).tip
    await write(handoffs.cancel, "h", house.ann.id, clock())
    await house.sent(held)
    assert await house.bound() == (house.session, house.former)
    assert await house.state() is State.CANCELLED
    assert (await house.world.store.session(house.session, house.ann)).tip != before
    assert [entry.text for entry in await house.world.store.path(house.session)] == ["cats", "cats!"]
    texts = [text for (text,) in await house.world.raw("select text from deliveries order by id")]
    assert texts[-1] == "This conversation didn't move here: it goes on in telegram.bot."
    with pytest.raises(Refused) as refused:
        await write(handoffs.cancel, "h", house.ann.id, clock())
    assert refused.value.why is Refusal.NO_HANDOFF


@pytest.mark.parametrize("first", ["sent", "expire", "both"])
async def test_a_time_out_in_the_moment_of_completion_is_done_or_undone_on_both_sides(house: House, first: str) -> None:
    held = await house.answered()
    clock = house.world.clock
    clock.passes(PATIENCE.progress + 1)
    write = house.world.store.driver.write
    steps = [house.sent(held), write(handoffs.expire, "h", clock())]
    if first == "both":
        await asyncio.gather(*steps)
    else:
        for step in steps if first == "sent" else reversed(steps):
            await step
    outcomes = {State.DONE: (None, house.session), State.FAILED: (house.session, house.former)}
    state = await house.state()
    assert await house.bound() == outcomes[state]
    assert first == "both" or state is (State.DONE if first == "sent" else State.FAILED)


async def test_a_driver_that_was_taken_for_dead_opens_nothing(house: House) -> None:
    await house.request()
    late = await house.claim(me="dead")
    newer = await house.claim(me="me")
    with pytest.raises(Fenced):
        await house.open(late)
    with pytest.raises(Fenced):
        await house.world.store.driver.write(handoffs.fail, late, "no", house.world.clock())
    assert await house.bound() == (house.session, house.former)
    await house.open(newer)
    assert await house.world.store.driver.write(handoffs.claim, "h", "other", PATIENCE, house.world.clock()) is None


async def test_who_doesnt_know_whether_they_took_a_step_takes_it_again(house: House) -> None:
    await house.request()
    read = house.world.store.driver.read
    lost = await house.claim()
    assert [one.id for one in await read(handoffs.unclaimed, "me")] == ["h"]
    assert await read(handoffs.unclaimed, "somebody else") == []
    driven = await house.claim()
    with pytest.raises(Fenced):
        await house.open(lost)
    lane = await house.open(driven)
    assert await house.open(driven) == lane
    assert await house.bound() == (house.session, house.session)
    assert await house.world.count("turns where kind = 'opening'") == 1


async def test_an_opening_turn_whose_handoff_ended_writes_nothing(house: House) -> None:
    await house.request()
    await house.open(await house.claim())
    run = await house.opening()
    await house.world.store.driver.write(handoffs.cancel, "h", house.ann.id, house.world.clock())
    with pytest.raises(Fenced):
        await house.finish(run, answer(run, "here"))
    assert [entry.text for entry in await house.world.store.path(house.session)] == ["cats", "cats!"]
    assert await house.world.raw("select head = tail, holder from sessions where id = $1", house.session) in (
        [(1, None)],
        [(True, None)],
    )


@pytest.mark.parametrize("outcome", [Outcome.ANSWERED, Outcome.FAILED, Outcome.STOPPED])
async def test_an_opening_without_an_answer_undoes_it(house: House, outcome: Outcome) -> None:
    await house.request()
    await house.open(await house.claim())
    run = await house.opening()
    await house.finish(run, Finish((run.name,), (), outcome=outcome))
    assert await house.bound() == (house.session, house.former)
    assert await house.state() is (State.CANCELLED if outcome is Outcome.STOPPED else State.FAILED)


async def test_while_it_is_under_way_messages_wait_and_nothing_moves(house: House) -> None:
    world = house.world
    await house.request()
    queued = await world.hear("ann", "and dogs?", private("laptop"), me="me")
    assert (queued.session, queued.run) == (house.session, None)
    assert await world.store.driver.write(turns.claim, "me", 10) == []
    with pytest.raises(Refused) as refused:
        await world.store.move(Renew(house.laptop, world.store.new_session_id()), house.ann)
    assert refused.value.why is Refusal.HANDOFF_RUNNING
    with pytest.raises(Refused) as refused:
        await house.request("again")
    assert refused.value.why is Refusal.HANDOFF_RUNNING
    await house.open(await house.claim())
    # The opening goes before what was said since.
    run = await house.opening()
    assert [turn.message for turn in run.turns] == [""]
    await house.finish(run, answer(run, "here"))
    assert await world.store.driver.write(turns.claim, "me", 10) == []
    await house.sent(await house.outgoing())
    [run] = await world.store.driver.write(turns.claim, "me", 10)
    assert [(turn.seq, turn.route) for turn in run.turns] == [(queued.turn, house.laptop.address.key)]


async def test_it_is_done_when_all_of_its_messages_were_sent(house: House) -> None:
    await house.request()
    await house.open(await house.claim())
    run = await house.opening()
    await house.finish(run, answer(run, "here", "I am"))
    first = await house.outgoing()
    await house.sent(first)
    assert await house.state() is State.CLAIMED
    assert await house.bound() == (house.session, house.session)
    last = await house.outgoing()
    assert (first.delivery.text, last.delivery.text) == ("here", "I am")
    await house.sent(last)
    assert await house.state() is State.DONE


async def test_what_the_origin_speaks_to_no_more_goes_nowhere(house: House) -> None:
    world = house.world
    write, bob = world.store.driver.write, await world.person("bob")
    theirs = await world.group(bob)
    session = await world.renew(theirs, bob, "dogs")
    there = private("with bob")
    await write(handoffs.request, "h", session, theirs, there, bob.id, PATIENCE, world.clock())
    driven = await house.claim()
    world.clock.passes(10)
    last_used = await world.renew(await world.group(house.ann), house.ann, "birds")
    await world.store.link(house.ann, bob)
    with pytest.raises(Refused) as refused:
        await house.open(driven, there)
    assert refused.value.why is Refusal.MOVED_SINCE
    await write(handoffs.fail, driven, "no", world.clock())
    assert await world.store.lanes_of(session) == []
    assert await world.store.lanes_of(last_used) == [await world.group(house.ann)]
    [(text,)] = await world.raw("select text from deliveries")
    assert text == "The handoff to telegram.bot failed: no."


async def test_a_place_that_turns_out_to_speak_to_something_else_gets_nothing(house: House) -> None:
    world = house.world
    bob = await world.person("bob")
    await house.request()
    await house.open(await house.claim(), public())
    run = await house.opening()
    await house.finish(run, answer(run, "here"))
    held = await house.outgoing()
    world.clock.passes(10)
    last_used = await world.renew(await world.group(bob), bob, "birds")
    await world.store.link(house.ann, bob)
    await house.sent(held)
    assert await house.state() is State.FAILED
    assert await world.store.lanes_of(house.session) == [house.laptop]
    assert await world.store.lanes_of(last_used) == [await world.group(house.ann)]
    assert [entry.text for entry in await world.store.path(house.session)] == ["cats", "cats!"]
    told = dict(await world.raw("select address, text from deliveries where handoff is null order by id"))
    assert told[public().address.key].startswith("This conversation didn't move here")
    assert told[house.laptop.address.key].endswith("changed meanwhile. The conversation is still here.")


async def test_what_turns_out_to_be_somebody_elses_doesnt_move_to_whoever_took_it_for_theirs(house: House) -> None:
    world = house.world
    write, bob = world.store.driver.write, await world.person("bob")
    theirs = await world.dm(bob, "with bob")
    session = await world.renew(theirs, bob, "dogs")
    merge = await world.store.link(house.ann, bob)
    await write(handoffs.request, "h", session, theirs, private("phone"), house.ann.id, PATIENCE, world.clock())
    await house.open(await house.claim())
    run = await house.opening()
    await house.finish(run, answer(run, "here"))
    held = await house.outgoing()
    await world.store.unlink(merge)
    await house.sent(held)
    assert await house.state() is State.FAILED
    assert await world.store.lanes_of(session) == [theirs]
    assert (await house.bound())[1] == house.former


async def test_a_home_that_is_taken_by_another_handoff_is_left_alone(house: House) -> None:
    world = house.world
    await house.request()
    await house.open(await house.claim())
    other = await world.dm(house.ann, "tablet")
    session = await world.renew(other, house.ann, "dogs")
    write = world.store.driver.write
    await write(handoffs.request, "two", session, other, private("phone"), house.ann.id, PATIENCE, world.clock())
    driven = await house.claim("two")
    with pytest.raises(Refused) as refused:
        await house.open(driven)
    assert refused.value.why is Refusal.HANDOFF_RUNNING
    await write(handoffs.fail, driven, "taken", world.clock())
    assert await house.bound() == (house.session, house.session)


async def test_only_its_owner_hands_a_session_off(house: House) -> None:
    world = house.world
    bob = await world.person("bob")
    args = "h", house.session, house.laptop, private("phone"), bob.id, PATIENCE, world.clock()
    with pytest.raises(Refused) as refused:
        await world.store.driver.write(handoffs.request, *args)
    assert refused.value.why is Refusal.NOT_ALLOWED
    await house.request()
    with pytest.raises(Refused) as refused:
        await world.store.driver.write(handoffs.cancel, "h", bob.id, world.clock())
    assert refused.value.why is Refusal.NOT_ALLOWED


async def test_a_thread_that_was_opened_is_shared_whatever_the_settings_say(house: House) -> None:
    await house.request()
    thread = Place(private("group", "t1").address, Kind.GROUP, opened=True)
    lane = await house.open(await house.claim(), thread)
    assert lane == Lane(thread.address)


async def test_a_session_goes_on_though_nobody_is_left_to_settle_its_handoff(house: House) -> None:
    world = house.world
    await house.request()
    await world.hear("ann", "and dogs?", private("laptop"))
    await world.raw("update sessions set due = 1 where id = $1", house.session)
    [run] = await world.store.driver.write(turns.claim, "me", 10)
    assert run.held.session == house.session
