"""A short sample of the drill: one call that is quick and one that is slower than the lease."""

from pathlib import Path

import pytest

from segue.core.messages import Sending
from tests.drills import slowness


@pytest.mark.full
async def test_a_callback_slower_than_the_lease_is_called_once(today_dsn: str) -> None:
    assert await slowness.run(today_dsn, [0.1, 5.0], 4.0, Sending.KEYED) == []


async def test_a_platform_slower_than_the_lease_shows_one_message_that_becomes_the_answer(tmp_path: Path) -> None:
    assert await slowness.run(str(tmp_path / "segue.db"), [0.1, 5.0], 4.0, Sending.EDIT) == []
