"""A sample of the drill in which agents have children work for them and the process dies at each labelled point."""

import pytest

from segue.core.contracts.probes import Point
from tests.drills import children


@pytest.mark.parametrize("point", children.LABELS, ids=str)
async def test_every_result_and_every_answer_of_a_child_comes_exactly_once(point: Point, database: str) -> None:
    report = await children.run(database, point, times=2, seed=7)
    assert report.accepted
    assert report.clean, str(report)
