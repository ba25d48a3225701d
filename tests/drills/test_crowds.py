"""A sample of the drill: more answers at once than an account has calls for."""

from pathlib import Path

import pytest

from tests.drills import crowds
from tests.drills.planting import Bug


@pytest.mark.parametrize("bug", [Bug.NONE, Bug.TURNS_WITHOUT_WAITING], ids=lambda bug: bug.name)
async def test_a_crowd_is_answered_and_the_event_loop_never_stands_still(bug: Bug, tmp_path: Path) -> None:
    found = await crowds.run(str(tmp_path / "segue.db"), 80, bug)
    assert found == ([] if bug is Bug.NONE else ["the event loop stands still"])
