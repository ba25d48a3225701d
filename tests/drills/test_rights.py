"""A sample of the rights drills; `make drill` does them at length."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.drills import rights
from tests.drills.planting import Bug

FOUND_BY_RIGHTS: dict[Bug, Callable[[Path, Bug], Awaitable[list[str]]]] = {
    Bug.ALLOWS_BY_ONE_LINE: lambda _, bug: rights.approvals(1, 100, bug),
    Bug.LIMITS_NOT_INHERITED: lambda folder, bug: rights.inheritance(folder, 1, 3, bug),
}


async def test_what_is_allowed_is_one_call() -> None:
    assert await rights.approvals(7, 300) == []


async def test_children_of_limited_accounts_have_their_limits(tmp_path: Path) -> None:
    assert await rights.inheritance(tmp_path, 7, 4) == []


@pytest.mark.parametrize("bug", FOUND_BY_RIGHTS, ids=lambda bug: bug.name)
async def test_a_planted_mistake_is_found(bug: Bug, tmp_path: Path) -> None:
    assert await FOUND_BY_RIGHTS[bug](tmp_path, bug)
