"""Round trips: how often PostgreSQL is asked for one message, and waited for."""

from collections.abc import Awaitable, Callable

from segue.changes.accept import Fresh, FrontDoor, Queued
from segue.changes.exchange import deliveries, replicas, turns
from segue.core.contracts.database import Driver
from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import Arrival, Speaker, Text
from segue.core.settings import GatewaySettings
from segue.core.transcripts import AGENT, Author, Draft, Role
from segue.core.turns import Finish, Finished, Reply
from segue.core.values import PersonId, SessionId
from segue.database.postgres import Postgres
from tests.database.wire import Wire

_DOOR = FrontDoor(GatewaySettings())


async def exchange(driver: Driver, n: int, count: Callable[[Awaitable[object]], Awaitable[object]]) -> None:
    """One message, its turn and its answer, as a gateway writes them."""
    place = Place(Address("telegram", "bot", chat="1"), Kind.DM)
    said = Arrival(place, f"m{n}", Speaker(Identity("telegram", "bot", "ann"), "Ann"), (Text("hello"),), n)
    fresh = Fresh(PersonId(f"p{n}"), SessionId(f"s{n}"), f"move{n}", (f"merge{n}",), f"trace{n}", n)
    queued = await count(driver.write(_DOOR.accept, said, fresh, "me"))
    assert isinstance(queued, Queued)
    assert queued.run is not None
    turn = queued.run.turns[0]
    drafts = (Draft(Author(Role.PERSON, turn.person, turn.name), turn.parts), Draft(AGENT, (Text("yes"),)))
    done = Finish((turn.seq,), drafts, (Reply(place.address, "yes", 2, (turn.message,)),))
    finished = await count(driver.write(turns.finish, queued.run.held, done, n, sends=True))
    assert isinstance(finished, Finished)
    [taken] = finished.taken
    assert taken.delivery.text == "yes"
    assert not await count(driver.write(deliveries.sent, taken, f"answer{n}", n))


async def test_a_warm_message_takes_four_round_trips_until_its_answer_is_taken_and_a_fifth_for_its_receipt(
    today_dsn: str,
) -> None:
    async with Wire.to(today_dsn) as wire:
        driver = await Postgres.open(wire.dsn, connections=1)
        trips: list[int] = []

        async def count(work: Awaitable[object]) -> object:
            before = wire.trips
            done = await work
            trips.append(wire.trips - before)
            return done

        await driver.write(replicas.join, "me", 1e6)
        for n in range(1, 7):
            await exchange(driver, n, count)
        await driver.close()
    assert trips[-3:] == [2, 2, 1]
