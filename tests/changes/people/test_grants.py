"""Access: grants with a beginning and an end, the host as one person, and codes that work once."""

import asyncio
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

import pytest

from segue.changes.accept import Queued
from segue.changes.commands.request import Request
from segue.changes.commands.transcript import TranscriptCommands
from segue.changes.exchange import turns
from segue.changes.people import codes, grants, persons
from segue.changes.people.access import Access
from segue.changes.people.codes import Code, CodeKind
from segue.changes.people.grants import Footing, Grant, Scope
from segue.core.commands import Command
from segue.core.contracts.database import Transaction
from segue.core.lanes import Identity, Kind, Lane, Person, Rules, account_key
from segue.core.moves import Limits
from segue.core.people import Standing
from segue.core.settings import AccountSettings, GatewaySettings
from segue.core.values import PersonId
from segue.errors import Invalid, Refusal, StoreLocked
from tests.changes.world import MARK, World, of_the_test, private, public

P = ParamSpec("P")
T = TypeVar("T")

BOT = account_key("telegram", "bot")
OTHER = account_key("telegram", "other")
SECRET = "5e" * 32
NOBODY = "nobody/knows/this"


class Gate:
    """A world in which somebody asks for codes."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def run(self, transaction: Callable[P, Transaction[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.world.store.driver.write(transaction, *args, **kwargs)

    async def offer(self, person: Person, code: str, account: str = BOT) -> bool:
        return await self.run(codes.offer_pairing, person.id, account, "there", code, SECRET, self.world.clock())

    async def give(self, person: Person, code: str) -> None:
        lane = await self.world.dm(person)
        await self.run(codes.give_link, person.id, lane, code, SECRET, self.world.clock())

    async def find(self, code: str, by: Person) -> Code | Refusal:
        return await self.run(codes.find_code, code, by.id, SECRET, self.world.clock())

    async def grant(self, person: Person, scope: Scope = Scope.DM, account: str = BOT, why: str = "why") -> bool:
        return await self.run(grants.grant, account, person.id, scope, why, person.id, self.world.clock())

    async def holding(self, account: str) -> list[Grant]:
        return [grant for grant in of_the_test(await self.run(grants.everyones)) if grant.account == account]

    async def granted(self, person: Person, scope: Scope = Scope.DM, account: str = BOT) -> bool:
        return (await self.footing(person, scope, account)).granted

    async def footing(
        self, person: Person, scope: Scope = Scope.DM, account: str = BOT, host: str = NOBODY, lane: Lane | None = None
    ) -> Footing:
        where = lane or await self.world.dm(person)
        now = (await self.world.store.identities(person))[0]
        known = await self.world.store.person(now)
        return await self.run(grants.footing, known.id, host, account, scope, where)


@pytest.fixture
def gate(world: World) -> Gate:
    return Gate(world)


@pytest.mark.parametrize(
    ("kind", "scope"), [(Kind.DM, Scope.DM), (Kind.GROUP, Scope.GROUP), (Kind.CHANNEL, Scope.GROUP)]
)
def test_private_chats_are_one_thing_and_all_else_another(kind: Kind, scope: Scope) -> None:
    assert grants.scope_of(kind) is scope


async def test_a_grant_holds_in_such_places_of_that_account_alone(world: World, gate: Gate) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    assert not await gate.granted(ann)
    assert await gate.grant(ann)
    assert await gate.granted(ann)
    assert not await gate.granted(ann, Scope.GROUP)
    assert not await gate.granted(ann, account=OTHER)
    assert not await gate.granted(bob)


async def test_a_grant_is_given_once_and_says_since_when_why_and_by_whom(world: World, gate: Gate) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    since = world.clock.passes(10)
    assert await gate.run(grants.grant, BOT, ann.id, Scope.DM, "a reason", bob.id, since)
    world.clock.passes(10)
    assert not await gate.grant(ann, why="another")
    assert await gate.holding(BOT) == [Grant(BOT, ann.id, Scope.DM, since, "a reason", bob.id)]
    assert await gate.holding(OTHER) == []


async def test_what_was_revoked_holds_no_more_and_can_be_given_again(world: World, gate: Gate) -> None:
    ann = await world.person("ann")
    await gate.grant(ann)
    await gate.grant(ann, Scope.GROUP)
    assert await gate.run(grants.revoke, BOT, ann.id, Scope.DM, ann.id, world.clock.passes(1))
    assert not await gate.run(grants.revoke, BOT, ann.id, Scope.DM, ann.id, world.clock())
    assert not await gate.granted(ann)
    assert await gate.granted(ann, Scope.GROUP)
    assert await gate.grant(ann)
    assert await gate.granted(ann)
    assert await world.raw("select count(*) from grants where until is not null") == [(1,)]


async def test_nobody_gets_a_grant_who_isnt_known(gate: Gate) -> None:
    with pytest.raises(Invalid, match="nobody"):
        await gate.run(grants.grant, BOT, PersonId("nobody"), Scope.DM, "why", PersonId("nobody"), 0.0)


async def test_who_is_merged_brings_their_grants_and_takes_them_along_again(world: World, gate: Gate) -> None:
    old, new = await world.person("old"), await world.person("new")
    await gate.grant(new)
    merge = await world.store.link(old, new)
    assert await gate.granted(old)
    await world.store.unlink(merge)
    assert not await gate.granted(old)
    assert await gate.granted(new)


async def test_what_is_revoked_is_revoked_for_all_that_somebody_was(world: World, gate: Gate) -> None:
    old, new = await world.person("old"), await world.person("new")
    await gate.grant(old)
    await gate.grant(new)
    await world.store.link(old, new)
    assert await gate.run(grants.revoke, BOT, new.id, Scope.DM, new.id, world.clock())
    assert not await gate.granted(old)
    assert await gate.holding(BOT) == []


async def test_whose_session_a_lane_speaks_to(world: World, gate: Gate) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    lane = await world.thread(ann)
    assert (await gate.footing(bob, lane=lane)).owner is None
    await world.renew(lane, ann)
    assert (await gate.footing(bob, lane=lane)).owner == ann.id
    await world.renew(lane, bob)
    assert (await gate.footing(bob, lane=lane)).owner == bob.id


HOSTS = (Identity("telegram", "bot", "host"), Identity("slack", "bot", "H1"), Identity("slack", "bot", "H2"))


async def unite(gate: Gate, hosts: tuple[Identity, ...] = HOSTS) -> None:
    merges = [gate.world.ids() for _ in hosts[1:]]
    await gate.run(grants.unite, hosts, merges, gate.world.clock.passes(1))


async def test_who_has_never_spoken_isnt_made_up(world: World, gate: Gate) -> None:
    await unite(gate)
    await unite(gate, ())
    assert await world.count("persons") == 0


async def test_all_identities_of_the_host_are_one_person(world: World, gate: Gate) -> None:
    slack = await world.person("H1", platform="slack")
    telegram = await world.person("host")
    stranger = await world.person("stranger")
    await unite(gate)
    found = [await world.store.person(identity) for identity in HOSTS]
    assert {person.id for person in found} == {slack.id}
    assert await world.count("persons") == 3
    for key in HOSTS:
        assert (await gate.footing(telegram, host=key.key)).host
        assert not (await gate.footing(stranger, host=key.key)).host
    await unite(gate)
    assert await world.count("merges") == 1


async def test_the_host_is_united_by_whichever_starts_first(world: World, gate: Gate) -> None:
    for identity in HOSTS:
        await world.person(identity.user, platform=identity.platform)
    others = [Gate(world), Gate(world), Gate(world)]
    await asyncio.gather(*(unite(other) for other in others))
    assert await world.count("merges") == 2
    assert len({(await world.store.person(identity)).id for identity in HOSTS}) == 1


async def test_who_speaks_for_the_host_first_speaks_for_all_of_them(world: World, gate: Gate) -> None:
    host = await world.person("host")
    await gate.run(grants.attach, HOSTS, host.id, world.clock())
    assert {(await world.store.person(identity)).id for identity in HOSTS} == {host.id}


async def test_a_stranger_gets_a_code_that_finds_them(world: World, gate: Gate) -> None:
    ann, host = await world.person("ann"), await world.person("host")
    assert await gate.offer(ann, "CDFG-HJKM")
    found = await gate.find("cdfghjkm", host)
    assert isinstance(found, Code)
    assert (found.kind, found.account, found.person, found.body) == (CodeKind.PAIRING, BOT, ann.id, "there")
    assert (await gate.run(codes.pair, found, host.id, world.clock())).id == ann.id
    assert await gate.granted(ann)
    assert not await gate.granted(ann, Scope.GROUP)
    [given] = await gate.holding(BOT)
    assert (given.why, given.by) == ("pairing", host.id)


async def test_no_code_is_in_the_database(world: World, gate: Gate) -> None:
    ann = await world.person("ann")
    await gate.offer(ann, "CDFG-HJKM")
    [row] = await world.raw("select * from codes")
    assert not any("CDFG" in str(column).upper() for column in row)


async def test_digests_go_by_the_secret_that_came_first(world: World, gate: Gate) -> None:
    ann = await world.person("ann")
    await gate.offer(ann, "CDFG-HJKM")
    found = await gate.run(codes.find_code, "CDFG-HJKM", ann.id, "77" * 32, world.clock())
    assert isinstance(found, Code)


async def test_a_stranger_gets_one_code_in_ten_minutes(world: World, gate: Gate) -> None:
    ann = await world.person("ann")
    assert await gate.offer(ann, "first")
    world.clock.passes(599)
    assert not await gate.offer(ann, "second")
    assert await gate.offer(ann, "elsewhere", OTHER)
    world.clock.passes(1)
    assert await gate.offer(ann, "third")
    assert await gate.find("first", ann) is Refusal.WRONG_CODE
    assert await gate.find("second", ann) is Refusal.WRONG_CODE
    assert isinstance(await gate.find("third", ann), Code)
    assert isinstance(await gate.find("elsewhere", ann), Code)


async def working(gate: Gate, people: Sequence[Person], host: Person) -> list[str]:
    return [one.name for one in people if isinstance(await gate.find(one.name, host), Code)]


async def test_a_fourth_code_of_an_account_displaces_the_oldest(world: World, gate: Gate) -> None:
    people, host = [await world.person(f"p{number}") for number in range(5)], await world.person("host")
    for person in people[:3]:
        assert await gate.offer(person, person.name)
        world.clock.passes(1)
    assert await gate.offer(people[0], "elsewhere", OTHER)
    assert await gate.offer(people[3], "p3")
    assert await working(gate, people[1:4], host) == ["p1", "p2", "p3"]
    assert await gate.find("p0", people[4]) is Refusal.WRONG_CODE
    assert isinstance(await gate.find("elsewhere", host), Code), "another account's doesn't make way"
    world.clock.passes(700)
    assert await gate.offer(people[2], "again"), "their own is replaced, so nobody else's makes way"
    assert await working(gate, [people[1], people[3]], host) == ["p1", "p3"]


async def test_however_many_ask_at_once_three_codes_work(world: World, gate: Gate) -> None:
    people = [await world.person(f"p{number}") for number in range(8)]
    assert all(await asyncio.gather(*(gate.offer(person, person.name) for person in people)))
    found = 0
    for person in people:
        guest = await world.person(f"g{person.name}")
        found += isinstance(await gate.find(person.name, guest), Code)
    assert found == 3


@pytest.mark.parametrize(("kind", "seconds"), [(CodeKind.PAIRING, 3600), (CodeKind.LINK, 600)])
async def test_a_code_works_for_a_while(world: World, gate: Gate, kind: CodeKind, seconds: int) -> None:
    ann = await world.person("ann")
    if kind is CodeKind.PAIRING:
        assert await gate.offer(ann, "code")
    else:
        await gate.give(ann, "code")
    world.clock.passes(seconds - 1)
    assert isinstance(await gate.find("code", ann), Code)
    world.clock.passes(1)
    assert await gate.find("code", ann) is Refusal.WRONG_CODE


async def test_a_new_link_code_takes_the_place_of_the_old(world: World, gate: Gate) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    await gate.give(ann, "one")
    await gate.give(bob, "bobs")
    await gate.give(ann, "two")
    assert await gate.find("one", bob) is Refusal.WRONG_CODE
    assert isinstance(await gate.find("two", bob), Code)
    assert isinstance(await gate.find("bobs", bob), Code)


def use_if_found(typed: str, by: PersonId, at: float) -> Transaction[Code | Refusal]:
    found = yield from codes.find_code(typed, by, SECRET, at)
    if isinstance(found, Code):
        yield from codes.use_code(found, at)
    return found


async def test_a_code_works_once_however_many_type_it_at_once(world: World, gate: Gate) -> None:
    ann, bob, eve = [await world.person(user) for user in ("ann", "bob", "eve")]
    await gate.give(ann, "code")
    typed = [gate.run(use_if_found, "code", person.id, world.clock()) for person in (bob, eve, bob, eve)]
    found = await asyncio.gather(*typed)
    assert sum(isinstance(one, Code) for one in found) == 1
    assert found.count(Refusal.WRONG_CODE) == 3


async def test_a_code_that_was_used_cant_be_used(world: World, gate: Gate) -> None:
    ann = await world.person("ann")
    await gate.give(ann, "code")
    found = await gate.find("code", ann)
    assert isinstance(found, Code)
    await gate.run(codes.use_code, found, world.clock())
    with pytest.raises(StoreLocked):
        await gate.run(codes.use_code, found, world.clock())


async def test_after_five_wrong_codes_even_a_right_one_is_refused_for_a_while(world: World, gate: Gate) -> None:
    ann, bob, eve = [await world.person(user) for user in ("ann", "bob", "eve")]
    await gate.give(ann, "code")
    for number in range(5):
        assert await gate.find(f"guess {number}", eve) is Refusal.WRONG_CODE
    assert await gate.find("code", eve) is Refusal.TOO_MANY_TRIES
    assert isinstance(await gate.find("code", bob), Code), "another person guesses for themselves"
    world.clock.passes(600)
    await gate.give(ann, "new")
    assert isinstance(await gate.find("new", eve), Code)


async def test_no_more_than_five_guesses_at_once_are_looked_at(world: World, gate: Gate) -> None:
    eve = await world.person("eve")
    answers = await asyncio.gather(*(gate.find(f"guess {number}", eve) for number in range(12)))
    assert answers.count(Refusal.WRONG_CODE) == 5
    assert answers.count(Refusal.TOO_MANY_TRIES) == 7


async def test_a_code_finds_who_its_person_is_now(world: World, gate: Gate) -> None:
    old, new = await world.person("old"), await world.person("new")
    await gate.give(new, "code")
    await world.store.link(old, new)
    found = await gate.find("code", old)
    assert isinstance(found, Code)
    assert found.person == old.id


async def test_what_decides_nothing_any_more_is_forgotten(world: World, gate: Gate) -> None:
    ann = await world.person("ann")
    await gate.give(ann, "code")
    await gate.find("guess", ann)
    await gate.run(codes.forget, world.clock.passes(86400))
    assert (await world.count("codes"), await world.count("tries")) == (1, 1)
    await gate.run(codes.forget, world.clock.passes(601))
    assert (await world.count("codes"), await world.count("tries")) == (0, 0)


async def test_a_block_stops_what_runs_and_withdraws_what_waits(world: World) -> None:
    thread = public("g", "t")
    running = await world.hear("ann", "one", thread, me="me")
    waiting = await world.hear("ann", "two", thread)
    bobs = await world.hear("bob", "three", thread)
    elsewhere = await world.hear("ann", "four", private("ann"))
    await world.store.driver.write(grants.block, running.met.person.id, bobs.met.person.id, world.clock())
    for queued, outcome in ((running, None), (waiting, "withdrawn"), (bobs, None), (elsewhere, "withdrawn")):
        [(became,)] = await world.raw(
            "select outcome from turns where session = $1 and seq = $2", queued.session, queued.turn
        )
        assert became == outcome
    assert await world.store.driver.read(turns.stopped, running.session)


async def unfinished(world: World, *queued: Queued) -> list[tuple[str | None, bool]]:
    """How turns ended, if they did, and whether they are to stop."""
    found = []
    for one in queued:
        [(outcome, stopped_by)] = await world.raw(
            "select outcome, stopped_by from turns where session = $1 and seq = $2", one.session, one.turn
        )
        found.append((outcome, stopped_by is not None))
    return found


async def test_a_revoke_ends_turns_where_nothing_else_lets_their_person_in(world: World, gate: Gate) -> None:
    club = GatewaySettings(accounts={("telegram", "bot"): AccountSettings(allow_groups=frozenset({"club"}))})
    running = await world.hear("ann", "one", private("ann"), me="me")
    waiting = await world.hear("ann", "two", private("ann"))
    elsewhere = await world.hear("ann", "three", public("club", "t"))
    bobs = await world.hear("bob", "four", private("bob"))
    person, at = running.met.person.id, world.clock()
    for one in (running, bobs):
        await gate.grant(one.met.person)
    still = Access(club, world.ids).still
    assert of_the_test(await world.store.driver.read(grants.astray, still)) == []
    await world.store.driver.write(grants.revoke_all, person, bobs.met.person.id, still, at)
    ended = await unfinished(world, running, waiting, elsewhere, bobs)
    assert ended == [(None, True), ("withdrawn", False), (None, False), (None, False)]


async def test_turns_end_whose_people_the_settings_let_in_no_more(world: World) -> None:
    anns = await world.hear("ann", "one", private("ann"), me="me")
    more, bobs = await world.hear("ann", "two", private("ann")), await world.hear("bob", "three", private("bob"))
    for allowed, gone in (({"ann", "bob"}, []), ({"bob"}, [anns.met.person.id])):
        account = AccountSettings(allow=frozenset({*allowed, MARK}), allow_groups=frozenset({MARK}))
        still = Access(GatewaySettings(accounts={("telegram", "bot"): account}), world.ids).still
        found = await world.store.driver.read(grants.astray, still)
        assert [person for person in found if person in (anns.met.person.id, bobs.met.person.id)] == gone
        for person in gone:
            await world.store.driver.write(grants.end_turns, person, still, world.clock())
    assert await unfinished(world, anns, more, bobs) == [(None, True), ("withdrawn", False), (None, False)]


@pytest.mark.parametrize("standing", [Standing.HOST, Standing.PARTICIPANT])
async def test_the_host_stops_anybodys_turn(world: World, standing: Standing) -> None:
    running = await world.hear("bob", "one", public("g", "t"), me="me")
    typed = world.arrival("ann", "/stop", public("g", "t"))
    met = await world.store.driver.write(persons.meet, typed.speaker, PersonId("ann"), (), world.clock())
    asked = Request(Command("stop"), typed, met, running.lane, standing, "trace", world.clock())
    commands = TranscriptCommands(None, Limits(), Rules(), world.ids)  # type: ignore[arg-type]
    await world.store.driver.write(commands.stop, asked)
    assert await world.store.driver.read(turns.stopped, running.session) is (standing is Standing.HOST)
