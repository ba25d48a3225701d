"""Strangers: whoever was only refused leaves nothing for ever."""

from segue.changes import audit
from segue.changes.people import codes, strangers
from segue.changes.people.access import Refuse, Verdict
from segue.changes.people.persons import Met
from segue.changes.places import merges
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Identity, Lane
from segue.core.messages import Arrival
from segue.core.values import Moment, PersonId
from segue.runtime.lifecycle.failures import Failures
from segue.runtime.pruning import Pruner
from segue.runtime.retrying import Patient
from tests.changes.invariants import violations
from tests.changes.people.test_access import HOST, SETTINGS, Door, said
from tests.changes.world import World, public

DAY = 86400.0


def pruner(world: World) -> Pruner:
    return Pruner(Patient(world.store.driver), (), SETTINGS, world.clock, Failures())


async def swept(world: World) -> None:
    """Everything is forgotten that the gateway forgets by and by."""
    await world.store.driver.write(codes.forget, world.clock())
    await world.store.driver.write(audit.forget, world.clock())
    unspoken = await world.store.driver.read(merges.unspoken, world.clock())
    await world.store.driver.write(merges.forget, unspoken, world.clock())
    await pruner(world)._strangers()


async def people(world: World) -> set[str]:
    return {key.rpartition("/")[2] for (key,) in await world.raw("select key from identities")}


async def test_who_was_only_refused_leaves_no_lane_and_no_person(world: World) -> None:
    door = Door(world, SETTINGS)
    await door.say("eve")
    await door.say("mallory", "hello", "some group")
    await door.say("trent", "/link AAAA-AAAA")
    assert await world.raw("select count(*) from lanes") == [(0,)]
    assert await world.raw("select count(*) from addresses") == [(0,)]
    assert await people(world) == {"eve", "mallory", "trent"}
    world.clock.passes(29 * DAY)
    await door.say("mallory", "hello", "some group")
    world.clock.passes(2 * DAY)
    await swept(world)
    assert await people(world) == {"mallory"}, "they were refused two days ago"
    world.clock.passes(31 * DAY)
    await swept(world)
    for table in ("persons", "identities", "tallies", "codes", "tries", "audit"):
        assert await world.raw(f"select count(*) from {table}") == [(0,)], table
    await door.say("eve")
    assert await people(world) == {"eve"}


async def test_whoever_got_in_or_is_known_otherwise_stays(world: World) -> None:
    door = Door(world, SETTINGS)
    await door.say("host")
    await door.say("ann")
    await door.say("host", f"/link {await door.code('bob')}")
    await door.say("U7", "/link", account="slack.team")
    world.clock.passes(3600)
    code = await door.code("ann", "/link")
    assert (await door.hears("carol", f"/link {code}")).startswith("That code is of ")
    for user in ("dan", "erin", "frank"):
        await door.say(user, chat="elsewhere")
    [(dan,)] = await world.raw("select person from identities where key like '%/dan'")
    [(erin,)] = await world.raw("select person from identities where key like '%/erin'")
    await world.store.driver.write(audit.note, audit.Fact(audit.Event.READ, dan, dan), world.clock())
    await world.raw("insert into blocks (person, since, until, by_person) values ($1, 0, 1, 'x')", erin)
    await world.store.person(Identity("irc", "net", "gus"))
    await world.store.person(HOST, "Host")
    world.clock.passes(400 * DAY)
    await swept(world)
    assert await people(world) == {"host", "H1", "ann", "bob", "U7", "carol", "dan", "erin"}


MENTIONS = """
heard (person, at) values ($1, 0)
tallies (person, bytes) values ($1, 1)
audit (at, last, event, person, by_person, account, identity, detail) values (0, 0, '', $1, '', '', '', '')
merges (id, kept, gone, since, why, by_person) values ('m', $1, 'nobody', 0, '', '')
merges (id, kept, gone, since, why, by_person) values ('n', 'nobody', $1, 0, '', '')
grants (account, person, place, since, until, why, by_person) values ('a', $1, 'dm', 0, 1, '', '')
blocks (person, since, until, by_person) values ($1, 0, 1, '')
sessions (id, owner, began_by, began, used) values ('s', $1, 'nobody', 0, 0)
sessions (id, owner, began_by, began, used) values ('t', 'nobody', $1, 0, 0)
lanes (key, address, person, since) select 'l', address, $1, 0 from lanes
questions (id, lane, person, kind, body, asked, deadline) select 'q', min(key), $1, '', '', 0, 0 from lanes
schedules (id, call, session, owner, task, line, zone, deliver, route, since, ended)
  values ('w', 'w', 's', $1, '', '', '', '', '', 0, 0)
handoffs (id, session, origin, destination, kind, state, by_person, requested, progressed, settled)
  select 'h', 's', min(key), '', 'dm', 'done', $1, 0, 0, 0 from lanes
homes (account, address, by_person, since) select 'a', min(address), $1, 0 from lanes
tries (person, at) values ($1, 0)
codes (digest, kind, account, person, body, made, expires) values ('c', 'link', '', $1, '', 0, 0)
tokens (id, digest, person, scope, name, made, ends) values ('k', 'k', $1, 'mcp', '', 0, 0)
"""


async def test_whoever_is_mentioned_anywhere_is_no_stranger(world: World) -> None:
    await world.hear("ann", "hello")
    await world.raw("insert into persons (id, name, since) values ('nobody', '', 0)")
    for n, mention in enumerate(MENTIONS.strip().replace("\n  ", " ").splitlines()):
        await world.raw("insert into persons (id, name, since) values ($1, '', 0)", f"p{n}")
        await world.raw(f"insert into {mention}", f"p{n}")
    await world.raw("insert into persons (id, name, since) values ('stranger', '', 0)")
    found = await world.store.driver.read(strangers.find, "", world.clock() + 400 * DAY)
    assert found.strangers == (PersonId("stranger"),)


async def test_many_strangers_go_a_page_at_a_time(world: World) -> None:
    many = 2 * strangers.AT_ONCE + 5
    for n in range(many):
        person = PersonId(f"p{n:04}")
        await world.raw("insert into persons (id, name, since) values ($1, '', 0)", person)
        key = Identity("telegram", "bot", str(n)).key
        await world.raw("insert into identities (key, person, first, since) values ($1, $2, $2, 0)", key, person)
    page = await world.store.driver.read(strangers.find, "", world.clock())
    assert len(page.strangers) <= strangers.AT_ONCE < many
    await pruner(world)._strangers()
    assert await world.raw("select count(*) from persons") == [(0,)]


async def test_strangers_are_looked_for_once_a_day_whoever_looks(world: World) -> None:
    counted: list[int] = []
    for passes in (0.0, 600.0, DAY, 600.0, -2 * DAY):
        world.clock.passes(passes)
        await world.raw("insert into persons (id, name, since) values ($1, '', 0)", f"p{len(counted)}")
        await pruner(world)._strangers()
        counted += [number for (number,) in await world.raw("select count(*) from persons")]
    assert counted == [0, 1, 0, 1, 0]


async def test_a_stranger_who_is_let_in_by_a_code_has_a_lane_then(world: World) -> None:
    door = Door(world, SETTINGS)
    await door.say("ann")
    code = await door.code("ann", "/link")
    await door.joins("eve", code)
    address = said("eve", "").place.address.key
    assert await world.raw("select count(*) from lanes where address = $1", address) == [(1,)]


async def test_ids_of_chats_that_only_strangers_brought_are_forgotten(world: World) -> None:
    door = world.door(refuse)
    for user in ("eve", "mallory"):
        arrival = world.arrival(user, "hello", public(user), chat_aliases=(f"{user} 2", f"{user} 3"))
        await world.store.driver.write(door.accept, arrival, world.fresh(arrival), None)
    await world.hear("ann", "hello", public("club"), chat_aliases=("club 2",))
    await world.hear("mallory", "let in", public("mallory 2"))
    world.clock.passes(29 * DAY)
    await swept(world)
    assert await world.count("aliases") == 5
    world.clock.passes(2 * DAY)
    await swept(world)
    for table, column in (("aliases", "alias"), ("chat_merges", "gone")):
        left = {Address.parse(key).chat for (key,) in await world.raw(f"select {column} from {table}")}
        assert left == {"club 2", "mallory 2", "mallory 3"}
    assert await violations(world.raw) == []


def refuse(_arrival: Arrival, _command: object, _met: Met, _lane: Lane, _at: Moment) -> Transaction[Verdict]:
    yield from ()
    return Refuse()
