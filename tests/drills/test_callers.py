"""A sample of the drill: callers who send or read nothing, and the mistakes that it finds."""

import pytest

from tests.drills import callers
from tests.drills.planting import Bug

FOUND = {
    Bug.WRITES_FOR_EVER: "no reader: the connection is kept for ever",
    Bug.NEWCOMERS_REFUSED: "half a head: somebody else isn't served",
}


async def test_callers_who_send_or_read_nothing_keep_nobody_from_being_served() -> None:
    assert await callers.run(4) == []


@pytest.mark.parametrize("bug", FOUND, ids=lambda bug: bug.name)
async def test_callers_find_it(bug: Bug) -> None:
    assert FOUND[bug] in await callers.run(4, bug, patience=1.0)
