"""A seeded sample of the kill drill; `make drill` takes ten thousand."""

import pytest

from tests.drills import kills
from tests.drills.gateways import Bug


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


async def test_the_drill_finds_a_gateway_that_acknowledges_before_it_commits(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    where = str(tmp_path_factory.mktemp("drill") / "segue.db")
    report = await kills.run(where, kills=15, seed=7, bug=Bug.ACKNOWLEDGES_FIRST)
    assert report.lost
