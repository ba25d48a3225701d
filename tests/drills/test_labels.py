"""A sample of the label drill: the process dies at each labelled point of a message's way."""

from pathlib import Path

import pytest

from segue.core.contracts.probes import Point
from segue.core.messages import Sending
from segue.core.settings import Streams
from tests.drills import handoffs, labels
from tests.drills.test_children import PLACES
from tests.full import full

MIGRATIONS = {Point.MIGRATION_BEGUN, Point.MIGRATION_DONE, Point.MIGRATION_COMMITTED}
"""Killed at in the tests of the drivers."""


def test_every_label_has_its_drill() -> None:
    assert set(labels.POINTS) | set(handoffs.POINTS) - {None} | MIGRATIONS == set(Point)


TAKEN: dict[Point, str] = dict(PLACES)
BY_TURNS = [
    (point, name) if name != TAKEN.get(point, "postgres") else full(point, name)
    for point in labels.POINTS
    for name in ("sqlite", "postgres")
]
"""Each label on one of the databases: the other one than where `test_children.py` dies at it."""


@pytest.mark.parametrize(("point", "database"), BY_TURNS, ids=str, indirect=["database"])
async def test_nothing_is_lost_or_doubled_though_the_process_dies(point: Point, database: str) -> None:
    sending = Sending.EDIT if point is Point.SEND_PLACED else Sending.KEYED
    streams = Streams.LIVE if point.startswith("stream") else Streams.WHOLE
    report = await labels.run(database, point, times=2, seed=7, sending=sending, streams=streams)
    assert report.accepted
    assert report.clean, str(report)


async def test_streaming_by_edits_leaves_a_placeholder_at_most(tmp_path: Path) -> None:
    where = str(tmp_path / "segue.db")
    report = await labels.run(where, Point.STREAM_SENT, times=3, seed=7, sending=Sending.EDIT, streams=Streams.LIVE)
    assert report.accepted
    assert report.clean, str(report)
