"""A sample of the drill in which agents have children work for them and the process dies at each labelled point."""

import pytest

from segue.core.contracts.probes import Point
from tests.drills import children


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
@pytest.mark.parametrize("point", children.LABELS, ids=str)
async def test_every_result_and_every_answer_of_a_child_comes_exactly_once(
    point: Point, database: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    where = str(tmp_path_factory.mktemp("drill") / "segue.db")
    if database == "postgres":
        where = request.getfixturevalue("postgres_dsn")
    report = await children.run(where, point, times=2, seed=7)
    assert report.accepted
    assert report.clean, report
