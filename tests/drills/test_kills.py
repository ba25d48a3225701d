"""A seeded sample of the kill drill; `make drill` takes ten thousand."""

import pytest

from tests.drills import kills


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
async def test_nothing_is_lost_doubled_or_out_of_order_though_the_gateway_is_killed(
    database: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    where = str(tmp_path_factory.mktemp("drill") / "segue.db")
    if database == "postgres":
        where = request.getfixturevalue("postgres_dsn")
    report = await kills.run(where, kills=200, seed=7)
    assert report.accepted > 200
    assert report.clean, report
