"""A sample of the hostile input; `make drill` makes a million cases."""

from pathlib import Path

import pytest

from tests.drills import hostile_input
from tests.drills.planting import Bug


async def test_whatever_comes_to_the_door_is_handled_quickly(tmp_path: Path) -> None:
    found = await hostile_input.run(str(tmp_path / "segue.db"), cases=250, seed=7)
    assert found.wrong == []


@pytest.mark.parametrize(
    ("bug", "told"),
    [
        (Bug.COMMAND_RAISES, "KeyError"),
        (Bug.PATTERN_EXPLODES, "it took"),
        (Bug.LIST_QUOTES_TOO_MUCH, "its answer has"),
    ],
    ids=lambda value: value.name if isinstance(value, Bug) else "",
)
async def test_a_planted_mistake_is_found_by_name(tmp_path: Path, bug: Bug, told: str) -> None:
    found = await hostile_input.run(str(tmp_path / "segue.db"), cases=1_500, seed=7, bug=bug)
    assert told in found.wrong[0]
