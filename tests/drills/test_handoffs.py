"""A seeded sample of the handoff drill; `make drill` takes a thousand."""

import pytest

from tests.drills import handoffs


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
async def test_a_handoff_is_done_or_undone_on_both_sides_whatever_races_it(
    database: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    where = str(tmp_path_factory.mktemp("drill") / "segue.db")
    if database == "postgres":
        where = request.getfixturevalue("postgres_dsn")
    found = await handoffs.run(where, lives=5, seed=3)
    assert found.wrong == []
    assert found.handoffs > 15
    assert 0 < found.done < found.handoffs
