"""A sample of the drill: more answers at once than an account has calls for."""

from pathlib import Path

import pytest

from tests.drills import crowds
from tests.drills.planting import Bug


@pytest.mark.parametrize("bug", [Bug.NONE, Bug.TURNS_WITHOUT_WAITING], ids=lambda bug: bug.name)
async def test_a_crowd_is_answered_and_the_event_loop_never_stands_still(bug: Bug, tmp_path: Path) -> None:
    found = await crowds.run(str(tmp_path / "segue.db"), 80, bug)
    assert found == ([] if bug is Bug.NONE else ["the event loop stands still"])


async def test_whom_the_platform_never_answers_for_keeps_no_other_one_waiting(tmp_path: Path) -> None:
    assert await crowds.hanging(str(tmp_path / "segue.db"), 100, slow=0.0) == []


async def test_calls_that_hang_and_keep_their_places_are_found(tmp_path: Path) -> None:
    where, bug = str(tmp_path / "segue.db"), Bug.HANGS_IN_PLACE
    [found] = await crowds.hanging(where, 100, slow=0.0, patience=1.0, bug=bug)
    assert found.endswith("somebody else is never answered")
