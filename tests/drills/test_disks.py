"""A sample of the disks that fail; `make drill` takes a thousand."""

from tests.drills import disks


def test_a_bad_disk_loses_nothing_and_nobody_is_told_a_lie() -> None:
    found = disks.run(troubles=len(disks.Trouble), seed=7)
    assert found.refused
    assert found.wrong == []
