"""A sample of the soak; `make drill` takes twenty thousand turns, and watches memory too."""

from pathlib import Path

from tests.drills import soak


async def test_nothing_of_a_turn_is_kept_when_it_is_over(tmp_path: Path) -> None:
    found = await soak.run(str(tmp_path / "segue.db"), turns=1000)
    assert found.wrong == []
