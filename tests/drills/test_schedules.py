"""A sample of the drill of scheduled work; `make drill` takes a thousand kills."""

from tests.drills import schedules
from tests.full import on_sqlite


@on_sqlite
async def test_work_that_is_due_when_a_replica_is_killed_is_done_once(database: str) -> None:
    found = await schedules.run(database, rounds=8, seed=7)
    assert found.due == 32
    assert found.clean, found
