"""A sample of the drill of messages that wait; `make drill` takes ten thousand at once."""

from tests.drills import backlog
from tests.full import on_sqlite


@on_sqlite
async def test_messages_that_wait_are_all_answered_in_order(database: str) -> None:
    assert await backlog.run(database, messages=2_000) == []
