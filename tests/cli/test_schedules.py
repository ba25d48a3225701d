import time

from segue.changes.exchange import schedules
from segue.changes.exchange.schedules import Order, Schedule
from segue.core.lanes import Address, Kind, Person, Place
from segue.core.moves import Renew
from segue.core.schedules import Plan
from segue.store import Store, fresh_ids
from tests.cli.conftest import Home


async def news(store: Store, host: Person) -> Schedule:
    """The news, every day at nine."""
    lane = await store.lane(Place(Address("http", "alpha", chat="c1"), Kind.DM), host)
    session = store.new_session_id()
    await store.move(Renew(lane, session), host)
    plan = Plan(1_900_000_000.0, "0 9 * * *", "UTC")
    order = Order(session, lane.key, host.id, "tell me the news", plan, "origin", lane.address.key)
    return await store.driver.write(schedules.make, order, fresh_ids(time.time)(), "call", time.time())


def test_scheduled_work_is_listed_and_cancelled(home: Home) -> None:
    made = home.do(news)
    [listed] = home.json("schedules", "list")
    assert (listed["id"], listed["line"], listed["task"]) == (made.id, "0 9 * * *", "tell me the news")
    line = home.segue("schedules", "list").stdout
    assert line == f"{made.id}  every day at 09:00 (UTC), next 2030-03-17 17:46  origin  tell me the news\n"
    assert home.segue("schedules", "cancel", made.id).stdout == "Cancelled: tell me the news\n"
    assert home.json("schedules", "list") == []
    assert home.segue("schedules", "list").stdout.startswith("Nothing is scheduled.")


def test_what_is_not_there_cannot_be_cancelled(home: Home) -> None:
    failed = home.segue("schedules", "cancel", "nothing")
    assert failed.exit_code == 2
    assert 'no scheduled work of yours is "nothing"' in failed.stderr
