"""A sample of the drill: some messages of four people, and a gateway that releases nothing by itself."""

from pathlib import Path

from tests.drills import unheard
from tests.drills.planting import Bug


async def test_all_is_answered_once_though_the_database_is_often_not_heard(tmp_path: Path) -> None:
    assert await unheard.run(str(tmp_path / "segue.db"), 15, seed=7) == []


async def test_a_gateway_that_never_looks_at_what_it_holds_is_found(tmp_path: Path) -> None:
    found = await unheard.run(str(tmp_path / "segue.db"), 15, seed=7, patience=2.0, bug=Bug.NEVER_LOOKS_AT_ITSELF)
    assert any("waits after" in wrong for wrong in found)
