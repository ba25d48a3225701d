"""A short sample of the drill that is everywhere at once, for `make drill` too: its parts have stories of their own."""

import pytest

from tests.drills import everywhere
from tests.servers import local_slack, synapse


@pytest.mark.full
async def test_one_session_in_five_places_loses_doubles_and_mixes_nothing() -> None:
    local_slack()
    synapse()
    found = await everywhere.run(seconds=10.0, seed=7, pause=1.0)
    assert found.wrong == []
    assert min(found.said.values()) > 1
    assert len(found.outages) == 5
    assert found.again > 0
