"""Merges of chats, undone: each chat has what was its own, whatever came in between."""

from collections import Counter
from itertools import permutations
from typing import Any, TypeVar

import pytest

from segue.changes import audit
from segue.changes.audit import Event
from segue.changes.exchange import handoffs, turns
from segue.changes.people import persons
from segue.changes.places import addresses, merges
from segue.changes.places.merges import ChatMerge
from segue.changes.sessions import readings
from segue.core.contracts.database import Statement, Together, Transaction
from segue.core.handoffs import Patience, State
from segue.core.lanes import Address, Kind, Lane, Person, Place, Rules, Sharing
from segue.core.messages import MOST_ALIASES, Opening
from segue.core.moves import Limits, Resume
from segue.core.values import SessionId
from segue.errors import Invalid, Refused
from tests.changes.invariants import violations
from tests.changes.world import World, answer, of_the_test, private

NUMBER, UUID = "+4915112345", "f0a1-uuid"
TOGETHER = Rules(groups=Sharing.TOGETHER)
PATIENCE = Patience(progress=60, total=600)
T = TypeVar("T")


def group(chat: str) -> Place:
    return Place(Address("signal", "+1", chat=chat), Kind.GROUP)


class Chats:
    """Groups with several ids, as Signal has them, and short words for what becomes of them."""

    def __init__(self, world: World, ann: Person) -> None:
        self.world = world
        self.ann = ann

    async def lane(self, chat: str, *aliases: str) -> Lane:
        self.world.clock.passes(10)
        return await self.world.store.lane(group(chat), self.ann, TOGETHER, aliases)

    async def begun(self, chat: str) -> SessionId:
        return await self.world.renew(await self.lane(chat), self.ann, f"said in {chat}")

    async def speaks(self, chat: str) -> SessionId | None:
        """What a chat speaks to, under whichever id it is known."""
        found = await self.world.store.bound(Lane(group(chat).address))
        return found.id if found else None

    async def holding(self) -> dict[str, str]:
        """The merges that hold, by the id that went."""
        return {
            merge.gone.chat: merge.id for merge in of_the_test(await self.world.store.driver.read(merges.holding, 100))
        }

    async def part(self, gone: str) -> ChatMerge:
        self.world.clock.passes(10)
        merge = (await self.holding())[gone]
        parted = await self.world.store.driver.write(
            merges.part, merge, self.ann.id, self.world.ids(), self.world.clock()
        )
        assert await violations(self.world.raw) == []
        return parted

    async def link(self, one: str, two: str) -> Address:
        at = self.world.clock.passes(10)
        two_chats = group(one).address, group(two).address
        return await self.world.store.driver.write(merges.link, *two_chats, self.ann.id, self.world.ids(), at)

    async def read_whole(self, chat: str, session: SessionId) -> bool:
        return await self.world.store.driver.read(readings.whole, group(chat).address, session)


@pytest.fixture
async def chats(world: World) -> Chats:
    return Chats(world, await world.person("ann"))


async def test_both_lanes_are_as_they_were_and_neither_reads_what_was_the_others(chats: Chats) -> None:
    first, second = await chats.begun(NUMBER), await chats.begun(UUID)
    lane = await chats.lane(UUID, NUMBER)
    assert lane.address.chat == NUMBER
    assert await chats.speaks(NUMBER) == second
    merge = await chats.part(UUID)
    assert (merge.kept.chat, merge.gone.chat, merge.why, merge.by) == (NUMBER, UUID, "alias", chats.ann.id)
    assert (await chats.speaks(NUMBER), await chats.speaks(UUID)) == (first, second)
    store = chats.world.store
    for chat, own, other in ((NUMBER, first, second), (UUID, second, first)):
        assert [found.id for found in await store.sessions_here(Lane(group(chat).address))] == [own]
        assert await chats.read_whole(chat, own)
        assert not await chats.read_whole(chat, other)
    with pytest.raises(Refused):
        await store.move(Resume(Lane(group(NUMBER).address), second), await chats.world.person("bob"))
    facts = await store.driver.read(audit.newest, 10)
    assert [(noted.fact.event, noted.fact.detail) for noted in facts] == [
        (Event.UNLINKED, f"chat {UUID}, with {NUMBER}"),
        (Event.LINKED, f"chat {UUID}, with {NUMBER}"),
    ]


async def test_a_lane_has_no_session_back_in_which_was_spoken_in_private_since(chats: Chats) -> None:
    first, second = await chats.begun(NUMBER), await chats.begun(UUID)
    await chats.lane(UUID, NUMBER)
    world, ann = chats.world, chats.ann
    await world.resume(await world.dm(ann), first, ann)
    await world.exchange(first, ann, "a secret", "kept")
    await chats.part(UUID)
    assert (await chats.speaks(NUMBER), await chats.speaks(UUID)) == (None, second)


async def test_a_home_stays_in_the_chat_in_which_it_was_named(chats: Chats) -> None:
    await chats.begun(NUMBER)
    await chats.begun(UUID)
    kept = await chats.link(NUMBER, UUID)
    gone = UUID if kept.chat == NUMBER else NUMBER
    store = chats.world.store
    await store.set_home(group(gone), chats.ann)

    async def home() -> list[str]:
        named = await store.driver.read(addresses.home, kept.platform, kept.account)
        assert named is not None
        every = await store.driver.read(addresses.homes)
        return [named.place.address.chat, *(one.place.address.chat for one in every)]

    assert await home() == [kept.chat, kept.chat]
    await chats.part(gone)
    assert await home() == [gone, gone]


async def test_the_lane_that_lost_has_its_session_back_and_the_other_goes_on(chats: Chats) -> None:
    lost = await chats.begun(NUMBER)
    stays = await chats.begun(UUID)
    # The older id stays, and what was used last.
    await chats.lane(NUMBER, UUID)
    assert await chats.speaks(UUID) == stays
    since = await chats.begun(UUID)
    assert await chats.speaks(NUMBER) == since
    await chats.part(UUID)
    # Said since under the id that stayed: it stays there.
    assert (await chats.speaks(NUMBER), await chats.speaks(UUID)) == (since, stays)
    assert {s.id for s in await chats.world.store.sessions_here(Lane(group(NUMBER).address))} == {lost, since}
    assert await chats.read_whole(NUMBER, since)


async def test_what_was_brought_from_the_other_since_goes_back_too(chats: Chats) -> None:
    earlier = await chats.begun(UUID)
    await chats.begun(UUID)
    first = await chats.begun(NUMBER)
    lane = await chats.lane(UUID, NUMBER)
    assert lane.address.chat == UUID
    assert await chats.speaks(UUID) == first
    await chats.world.resume(lane, earlier, chats.ann)
    await chats.part(NUMBER)
    assert (await chats.speaks(UUID), await chats.speaks(NUMBER)) == (earlier, first)
    assert not await chats.read_whole(UUID, first)


async def test_a_session_of_the_other_that_was_resumed_since_is_left(chats: Chats) -> None:
    first, second = await chats.begun(NUMBER), await chats.begun(UUID)
    await chats.world.store.say(first, chats.ann, "used last")
    lane = await chats.lane(UUID, NUMBER)
    since = await chats.begun(NUMBER)
    await chats.world.resume(lane, second, chats.ann)
    await chats.part(UUID)
    assert (await chats.speaks(NUMBER), await chats.speaks(UUID)) == (since, second)


async def test_a_lane_doesnt_go_back_to_what_was_closed_since(chats: Chats) -> None:
    await chats.begun(NUMBER)
    second = await chats.begun(UUID)
    await chats.lane(UUID, NUMBER)
    await chats.world.store.close_session(second, chats.ann)
    await chats.part(UUID)
    assert (await chats.speaks(NUMBER), await chats.speaks(UUID)) == (None, None)


async def test_ids_that_were_parted_stay_two_when_they_are_told_together_again(chats: Chats) -> None:
    first, second = await chats.begun(NUMBER), await chats.begun(UUID)
    await chats.lane(UUID, NUMBER)
    await chats.part(UUID)
    for chat, alias in ((UUID, NUMBER), (NUMBER, UUID)):
        assert (await chats.lane(chat, alias)).address.chat == chat
    assert (await chats.speaks(NUMBER), await chats.speaks(UUID)) == (first, second)
    assert await chats.holding() == {}
    # Another id that comes with them belongs to the one that spoke, and doesn't join them either.
    await chats.lane(UUID, NUMBER, "username")
    await chats.lane(NUMBER, UUID, "username")
    assert (await chats.lane("username")).address.chat == UUID
    assert await chats.speaks(NUMBER) == first


async def test_a_new_fact_or_the_host_makes_them_one_again(chats: Chats) -> None:
    await chats.begun(NUMBER)
    await chats.begun(UUID)
    await chats.lane(UUID, NUMBER)
    await chats.part(UUID)
    # An id that was first told later names both.
    await chats.lane(NUMBER, "username")
    assert (await chats.lane(UUID, "username")).address.chat == NUMBER
    await chats.part(UUID)
    assert (await chats.lane(UUID, "username")).address.chat == UUID
    assert (await chats.link(UUID, NUMBER)).chat == NUMBER
    assert (await chats.lane(UUID)).address.chat == NUMBER
    [merge] = [m for m in await chats.world.store.driver.read(merges.holding, 9) if m.gone.chat == UUID]
    assert merge.why == "host"
    with pytest.raises(Invalid, match="one chat already"):
        await chats.link(UUID, NUMBER)
    with pytest.raises(Invalid, match="nobody has spoken in 'nowhere'"):
        await chats.link(UUID, "nowhere")
    await chats.part(UUID)
    assert (await chats.lane(UUID, NUMBER)).address.chat == UUID


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("order", list(permutations(["two", "three"])))
async def test_three_chats_are_three_again_in_either_order(
    chats: Chats, order: tuple[str, str], *, at_once: bool
) -> None:
    sessions = {chat: await chats.begun(chat) for chat in ("one", "two", "three")}
    if at_once:
        await chats.lane("two", "three", "one")
    else:
        # The second pair takes the first one in.
        await chats.lane("three", "two")
        await chats.lane("two", "one")
    assert (await chats.speaks("one"), await chats.speaks("two")) == (sessions["three"], sessions["three"])
    for chat in order:
        await chats.part(chat)
    assert {chat: await chats.speaks(chat) for chat in sessions} == sessions
    for chat, session in sessions.items():
        # It counts as begun where it was.
        began = await chats.world.raw("select origin from sessions where id = $1", session)
        assert began == [(Lane(group(chat).address).key,)]
        assert [s.id for s in await chats.world.store.sessions_here(Lane(group(chat).address))] == [session]
        assert [other for other in sessions if await chats.read_whole(other, session)] == [chat]
    await chats.lane("two", "three", "one")
    assert await chats.holding() == {}


async def test_an_id_that_nobody_spoke_by_before_is_a_chat_of_its_own_then(chats: Chats) -> None:
    """A number that somebody else has by now."""
    first = await chats.begun(UUID)
    await chats.lane(UUID, NUMBER)
    lane = await chats.lane("another uuid", NUMBER)
    assert lane.address.chat == UUID
    await chats.part("another uuid")
    assert await chats.lane("another uuid", NUMBER) == Lane(group("another uuid").address)
    assert (await chats.speaks(UUID), await chats.speaks("another uuid")) == (first, None)
    assert (await chats.lane(NUMBER)).address.chat == UUID


async def test_a_merge_is_undone_once(chats: Chats) -> None:
    await chats.begun(NUMBER)
    await chats.begun(UUID)
    await chats.lane(UUID, NUMBER)
    merge = await chats.part(UUID)
    for id in (merge.id, "nothing"):
        with pytest.raises(Invalid, match="doesn't hold"):
            await chats.world.store.driver.write(merges.part, id, chats.ann.id, "again", chats.world.clock())


async def test_a_turn_that_runs_is_answered_where_it_was_asked(world: World) -> None:
    ann = (await world.hear("ann", "one", private(NUMBER))).met.person
    second = (await world.hear("ann", "two", private(UUID))).session
    queued = await world.hear("ann", "three", private(UUID), chat_aliases=(NUMBER,), me="r")
    assert (queued.session, queued.lane.address.chat) == (second, NUMBER)
    [run] = [run for run in await world.store.driver.write(turns.claim, "r", 9) if run.held.session == second]
    [merge] = of_the_test(await world.store.driver.read(merges.holding, 9))
    await world.store.driver.write(merges.part, merge.id, ann.id, "parted", world.clock())
    await world.store.driver.write(turns.finish, run.held, answer(run, "done"), world.clock())
    [run] = [run for run in await world.store.driver.write(turns.claim, "r", 9) if run.held.session == second] or [run]
    assert await world.said(second) == ["done"]
    there = await world.store.bound(Lane(private(UUID).address))
    assert there is not None
    assert there.id == second
    assert not await world.store.driver.read(readings.whole, private(NUMBER).address, second)
    assert await violations(world.raw) == []


@pytest.mark.parametrize("fails", [True, False])
async def test_a_handoff_on_the_way_gives_the_place_back_what_was_its_own(chats: Chats, *, fails: bool) -> None:
    world, driver = chats.world, chats.world.store.driver
    first, second = await chats.begun(NUMBER), await chats.begun(UUID)
    await chats.lane(UUID, NUMBER)
    origin = await world.dm(chats.ann)
    moving = await world.renew(origin, chats.ann, "moves")
    asked = (moving, origin, group(NUMBER), chats.ann.id, PATIENCE)
    request = await driver.write(handoffs.request, "h", *asked, world.clock())
    driven = await driver.write(handoffs.claim, request.id, "r", PATIENCE, world.clock())
    assert driven is not None
    opening = Opening("here", "there")
    opened = await driver.write(
        handoffs.open_in, driven, group(NUMBER), TOGETHER, Limits(), PATIENCE, opening, world.clock()
    )
    assert await chats.speaks(NUMBER) == moving
    await chats.part(UUID)
    assert (await chats.speaks(NUMBER), await chats.speaks(UUID)) == (moving, second)
    if fails:
        await driver.write(handoffs.fail, driven, "no", world.clock())
        assert (await chats.speaks(NUMBER), await chats.speaks(UUID)) == (first, second)
    found = await driver.read(handoffs.read, "h")
    assert (found.state is State.FAILED, opened.address.chat) == (fails, NUMBER)
    assert await violations(world.raw) == []


async def test_who_was_parted_has_a_private_chat_of_their_own_again(world: World) -> None:
    """UUID and number, told by one message, as Signal does."""
    one = await world.hear(NUMBER, "as a number", private(NUMBER))
    two = await world.hear(UUID, "as a uuid", private(UUID))
    both = await world.hear(UUID, "as both", private(UUID), aliases=(NUMBER,), chat_aliases=(NUMBER,))
    assert (both.session, both.lane, both.met.person.id) == (two.session, one.lane, one.met.person.id)
    read, write = world.store.driver.read, world.store.driver.write
    [merge] = await read(persons.merges, one.met.person.id)
    await write(persons.part_by, merge.id, one.met.person.id, "parted", world.clock())
    assert of_the_test(await read(merges.holding, 9)) == []
    for spoke in (one, two):
        there = await world.store.bound(spoke.lane)
        assert there is not None
        assert (there.id, there.owner) == (spoke.session, spoke.met.person.id)
        assert (await read(addresses.people, spoke.lane.address)).keys() == {spoke.met.person.id}
        private_chats = await read(addresses.private_chats, spoke.met.person.id, "telegram", "bot")
        assert [place.address for place in private_chats] == [spoke.lane.address]
    again = await world.hear(UUID, "again", private(UUID), aliases=(NUMBER,), chat_aliases=(NUMBER,))
    assert (again.session, again.met.person.id) == (two.session, two.met.person.id)
    assert await violations(world.raw) == []


def counted(transaction: Transaction[T], names: Counter[str]) -> Transaction[T]:
    """The same transaction, with its statements counted by name."""
    rows: Any = None
    while True:
        try:
            step = transaction.send(rows)
        except StopIteration as done:
            result: T = done.value
            return result
        steps = step.statements if isinstance(step, Together) else [step] if isinstance(step, Statement) else []
        names.update(statement.name for statement in steps)
        rows = yield step


async def test_three_times_as_many_ids_of_a_chat_take_three_times_the_statements(chats: Chats) -> None:
    store, counts = chats.world.store, list[int]()
    for ids in (10, 30):
        names = Counter[str]()

        def settle(ids: int = ids, names: Counter[str] = names) -> Transaction[Place]:
            aliases = [f"{ids}-{n}" for n in range(ids)]
            return counted(merges.settle(group(f"{ids}"), aliases, chats.ann.id, f"merge{ids}", 5.0), names)

        await store.driver.write(settle)
        counts.append(names.total())
    few, many = counts
    assert many <= 3 * few


async def test_of_a_thousand_ids_only_the_first_few_count(chats: Chats) -> None:
    """Of every adapter, not only of those that refuse more."""
    world = chats.world
    told = tuple(f"other-{n}" for n in range(1000))
    arrival = world.arrival("ben", "hello", group("many"), chat_aliases=told, aliases=told)
    names = Counter[str]()

    def accept() -> Transaction[object]:
        return counted(world.door().accept(arrival, world.fresh(arrival), None), names)

    await world.store.driver.write(accept)
    assert names.total() < 200
    assert {chat for chat in await chats.holding() if chat.startswith("other-")} == set(told[:MOST_ALIASES])
