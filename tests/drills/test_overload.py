"""A sample of the overload; `make drill` presses for a minute."""

from pathlib import Path

import pytest

from tests.drills import overload
from tests.full import full


@pytest.mark.parametrize("engine", ["sqlite", full("postgres")])
async def test_twice_of_what_can_be_done_is_slowed_then_refused_and_nothing_is_lost(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where = str(tmp_path / "segue.db") if engine == "sqlite" else request.getfixturevalue("postgres_dsn")
    found = await overload.run(where, seconds=5.0, seed=7)
    assert found.wrong == [], found
