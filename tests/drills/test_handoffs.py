"""A seeded sample of the handoff drill; `make drill` takes a thousand."""

from tests.drills import handoffs
from tests.full import on_sqlite


@on_sqlite
async def test_a_handoff_is_done_or_undone_on_both_sides_whatever_races_it(database: str) -> None:
    found = await handoffs.run(database, lives=5, seed=3)
    assert found.wrong == []
    assert found.handoffs > 15
    assert 0 < found.done < found.handoffs
