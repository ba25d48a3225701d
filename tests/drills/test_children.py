"""A sample of the drill in which agents have children work for them and the process dies at each labelled point."""

from itertools import cycle

import pytest

from segue.core.contracts.probes import Point
from tests.drills import children

PLACES: list[tuple[Point, str]] = list(zip(children.LABELS, cycle(["sqlite", "postgres"]), strict=False))
"""The points, with the databases by turns: `test_labels.py` dies at each on the other one."""


@pytest.mark.parametrize(("point", "database"), PLACES, indirect=["database"])
async def test_every_result_and_every_answer_of_a_child_comes_exactly_once(point: Point, database: str) -> None:
    report = await children.run(database, point, times=2, seed=7)
    assert report.accepted
    assert report.clean, str(report)
