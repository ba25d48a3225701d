"""The clock that a test moves."""

from pathlib import Path

from segue.core.lanes import Identity
from segue.database.sqlite import Sqlite
from segue.store import Store
from segue.testing.waits import HandClock


def test_it_stands_still_until_it_is_moved() -> None:
    clock = HandClock(100.0)
    assert [clock(), clock()] == [100.0, 100.0]
    assert clock.passes(1.5) == 101.5
    assert clock() == 101.5
    clock.passes(-2)
    assert clock() == 99.5


async def test_the_store_and_its_database_go_by_it(tmp_path: Path) -> None:
    clock = HandClock(100.0)
    async with Store(await Sqlite.open(tmp_path / "segue.db", clock=clock), clock) as store:
        first = await store.person(Identity("slack", "main", "u1"))
        clock.passes(60)
        second = await store.person(Identity("slack", "main", "u2"))
    assert (first.since, second.since) == (100.0, 160.0)
