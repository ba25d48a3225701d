import time
from collections.abc import AsyncIterator

from segue.changes.exchange import schedules
from segue.changes.exchange.schedules import Order, Schedule
from segue.cli.host import config_here, file_store
from segue.config import Fetch
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


async def once(text: str) -> AsyncIterator[bytes]:
    yield text.encode()


def test_a_result_is_listed_and_written_to_a_file(any_home: Home) -> None:
    async def ran(store: Store, host: Person) -> Schedule:
        made = await news(store, host)
        files = file_store(config_here(Fetch.STORE), store)
        for day in (1, 2):
            await files.put(f"scheduled/{made.id}/2026-06-0{day}T0900+0000.md", once(f"# news {day}\n"))
        await files.put("scheduled/anothers/2026-06-03T0900+0000.md", once("# other news\n"))
        return made

    id, file = any_home.do_configured(ran).id, any_home.path / "news.md"
    shown = any_home.json("schedules", "show", id)
    assert shown["schedule"]["task"] == "tell me the news"
    assert shown["results"] == ["2026-06-01T0900+0000", "2026-06-02T0900+0000"]
    assert any_home.segue("schedules", "show", id).stdout.splitlines()[1:] == shown["results"]
    assert any_home.segue("schedules", "show", id, "--output", str(file)).exit_code == 0
    assert file.read_text() == "# news 2\n"
    assert any_home.segue("schedules", "show", id, "--time", shown["results"][0], "--output", str(file)).exit_code == 0
    assert file.read_text() == "# news 1\n"
    failed = any_home.segue("schedules", "show", id, "--time", "never", "--output", str(file))
    assert (failed.exit_code, "2026-06-01T0900+0000" in failed.stderr) == (2, True)
    assert any_home.segue("schedules", "show", "anothers").exit_code == 2
