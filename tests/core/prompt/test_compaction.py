"""When a conversation is to be summed up: by what the provider reported, against the window."""

import pytest

from segue.core.contracts.agents import Usage
from segue.core.prompt.compaction import compaction_due, request_to_sum_up


@pytest.mark.parametrize(
    ("last", "window", "due"),
    [
        (None, 1000, False),
        (Usage("m", input=799, output=1), 1000, False),
        (Usage("m", input=799, output=2), 1000, True),
        (Usage("m", input=5000), 0, False),
        (Usage("m", input=700, output=200, reasoning=150), 1000, False),
        (Usage("m", input=900, cache_read=890), 1000, True),
    ],
    ids=["nothing was sent yet", "at the edge", "above it", "nobody knows", "thoughts aren't sent again", "cached too"],
)
def test_it_goes_by_the_prompt_that_was_last_reported(last: Usage | None, window: int, due: bool) -> None:  # noqa: FBT001 -- a table's column
    assert compaction_due(last, window) is due


def test_the_focus_is_asked_for() -> None:
    assert "the budget" in request_to_sum_up("the budget")
    assert "concerns" not in request_to_sum_up()
