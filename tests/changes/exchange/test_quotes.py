"""Quotes: a reply leads to the session that wrote a message, if that has been there and its person may go back."""

from msgspec.structs import replace

from segue.changes.exchange import deliveries, quotes, turns
from segue.core.lanes import Place
from segue.core.values import SessionId
from tests.changes.world import World, answer, private


async def test_a_quote_leads_to_a_session_only_where_that_has_been_and_to_whom_it_may(world: World) -> None:
    driver = world.store.driver
    there = (await world.hear("ann", "there", private("there"))).lane
    queued = await world.hear("ann", "hello", private("here"), me="r")
    ann, bob = queued.met.person, await world.person("bob")
    assert queued.run is not None
    # An agent may send something to a place that never spoke to its session.
    done = answer(queued.run, "news")
    done = replace(done, replies=(replace(done.replies[0], address=there.address),))
    await driver.write(turns.finish, queued.run.held, done, world.clock())
    [out] = await driver.write(deliveries.outgoing, "r", "telegram", "bot", 1)
    await driver.write(deliveries.sent, out, "m-1", world.clock())

    async def quoted() -> list[SessionId | None]:
        place = Place(there.address)
        return [await driver.read(quotes.session, there, place, "m-1", person.id) for person in (ann, bob)]

    assert await quoted() == [None, None]
    await world.resume(there, queued.session, ann)
    assert await quoted() == [queued.session, None]
    await world.renew(there, ann, "something else")
    assert await quoted() == [queued.session, None]
    await world.store.close_session(queued.session, ann)
    assert await quoted() == [None, None]
