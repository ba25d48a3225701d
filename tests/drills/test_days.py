"""A sample of the drill: a start nine days ahead."""

from pathlib import Path

import pytest

from tests.drills import days
from tests.drills.planting import Bug


@pytest.mark.parametrize("bug", [Bug.NONE, Bug.DAYS_BY_THE_CLOCK], ids=lambda bug: bug.name)
async def test_a_start_with_a_clock_that_is_ahead_makes_nothing_old(bug: Bug, tmp_path: Path) -> None:
    found = await days.run(str(tmp_path / "segue.db"), 9, bug)
    assert ("a start 9 days ahead forgets what was said" in found) is (bug is not Bug.NONE)
    assert found == [] or bug is not Bug.NONE
