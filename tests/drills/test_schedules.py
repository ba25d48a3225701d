"""A sample of the drill of scheduled work; `make drill` takes a thousand kills."""

import pytest

from tests.drills import schedules


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
async def test_work_that_is_due_when_a_replica_is_killed_is_done_once(
    database: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    where = str(tmp_path_factory.mktemp("drill") / "segue.db")
    if database == "postgres":
        where = request.getfixturevalue("postgres_dsn")
    found = await schedules.run(where, rounds=8, seed=7)
    assert found.due == 32
    assert found.clean, found
