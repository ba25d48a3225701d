"""A sample of the zombie drill; `make drill` takes a thousand."""

from tests.drills import zombies


async def test_a_replica_that_froze_past_its_lease_writes_nothing_more(today_dsn: str) -> None:
    found = await zombies.run(today_dsn, rounds=3, seed=7)
    assert found.report.accepted == 12
    assert found.refused > 0
    assert found.clean, found
