"""A seeded sample of the power cuts; `make drill` takes twenty thousand."""

import pytest

from segue.store import file
from tests.drills import power
from tests.drills.planting import Patch, pragma

UNSYNCED = {
    "commits": pragma("synchronous", "normal"),
    "anything": pragma("synchronous", "off"),
    "the folder": Patch(file, "_sync_folder", lambda _: lambda _folder: None),
}
"""What a gateway could forget to sync."""


def test_what_was_acknowledged_is_there_after_a_power_cut() -> None:
    found = power.run(images=150, seed=7)
    assert found.told > 150
    assert found.wrong == []


@pytest.mark.parametrize("what", UNSYNCED)
def test_the_drill_finds_what_is_not_synced(what: str) -> None:
    found = power.run(images=80, seed=7, bugs=(UNSYNCED[what],))
    assert any("lost" in each for each in found.wrong)
