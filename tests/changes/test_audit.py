"""The audit: each fact in the transaction that makes it true, and no more rows than anybody is worth."""

from segue.changes import audit
from segue.changes.audit import Event, Fact, Noted
from segue.changes.people import grants
from segue.changes.people.grants import Scope
from tests.changes.world import World


async def noted(world: World, person: str = "") -> list[Noted]:
    return await world.store.driver.read(audit.newest, 100, person)


async def test_who_is_let_in_linked_parted_and_revoked_is_written_down(world: World) -> None:
    ann, bob = await world.person("ann"), await world.person("bob")
    write, at = world.store.driver.write, world.clock.passes(1)
    await write(grants.grant, "telegram/bot", bob.id, Scope.DM, "pairing", ann.id, at)
    assert not await write(grants.grant, "telegram/bot", bob.id, Scope.DM, "pairing", ann.id, at)
    merge = await world.store.link(ann, bob)
    await world.store.unlink(merge)
    await write(grants.revoke, "telegram/bot", bob.id, Scope.DM, ann.id, at)
    assert not await write(grants.revoke, "telegram/bot", bob.id, Scope.DM, ann.id, at)
    facts = [(each.fact.event, each.fact.person, each.fact.by, each.fact.detail) for each in await noted(world)]
    assert facts == [
        (Event.REVOKED, bob.id, ann.id, "dm"),
        (Event.UNLINKED, ann.id, ann.id, f"from {bob.id}"),
        (Event.LINKED, ann.id, ann.id, f"link, with {bob.id}"),
        (Event.LET_IN, bob.id, ann.id, "dm, pairing"),
    ]
    assert [each.fact.event for each in await noted(world, bob.id)] == [Event.REVOKED, Event.LET_IN]


async def test_a_refusal_is_one_row_an_hour_whoever_repeats_it(world: World) -> None:
    eve = await world.person("eve")
    fact = Fact(Event.REFUSED, eve.id, account="telegram/bot", detail="stranger")
    for _ in range(50):
        await world.store.driver.write(audit.note, fact, world.clock.passes(60))
    rows = await noted(world)
    assert len(rows) == 1
    assert (rows[0].count, rows[0].name, rows[0].last - rows[0].at) == (50, eve.name, 49 * 60.0)
    await world.store.driver.write(audit.note, fact, world.clock.passes(3600))
    assert [row.count for row in await noted(world)] == [1, 50]


async def test_refusals_are_forgotten_after_a_month_and_nothing_else_is(world: World) -> None:
    write = world.store.driver.write
    await write(audit.note, Fact(Event.REFUSED, "eve"), world.clock())
    await write(audit.note, Fact(Event.LET_IN, "eve"), world.clock())
    await write(audit.forget, world.clock.passes(29 * 86400))
    assert len(await noted(world)) == 2
    await write(audit.forget, world.clock.passes(2 * 86400))
    assert [row.fact.event for row in await noted(world)] == [Event.LET_IN]
