"""A seeded sample of the power cuts; `make drill` takes twenty thousand."""

from tests.drills import power


def test_what_was_acknowledged_is_there_after_a_power_cut() -> None:
    found = power.run(images=150, seed=7)
    assert found.told > 150
    assert found.wrong == []
