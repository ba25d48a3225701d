"""A sample of the drill of budgets; `make drill` makes a thousand tries on each database."""

import pytest

from tests.drills import budgets
from tests.drills.planting import Bug


@pytest.mark.parametrize(("turns", "tokens"), [(15, 0), (0, 1_500)], ids=["turns", "tokens"])
async def test_two_gateways_never_spend_more_than_one_budget(turns: int, tokens: int, today_dsn: str) -> None:
    found = await budgets.run(today_dsn, people=40, seed=7, turns=turns, tokens=tokens)
    assert not found.wrong, found.wrong


async def test_a_budget_that_nobody_reserves_from_is_overspent(today_dsn: str) -> None:
    found = await budgets.run(today_dsn, people=40, seed=7, turns=15, kills=0, bug=Bug.NOTHING_RESERVED)
    assert any(line.startswith("over") for line in found.wrong), found
