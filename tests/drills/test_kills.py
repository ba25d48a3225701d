"""A seeded sample of the kill drill; `make drill` takes ten thousand."""

from tests.drills import kills
from tests.full import on_sqlite


@on_sqlite
async def test_nothing_is_lost_doubled_or_out_of_order_though_the_gateway_is_killed(database: str) -> None:
    report = await kills.run(database, kills=25, seed=7)
    assert report.accepted > 25
    assert report.clean, str(report)
