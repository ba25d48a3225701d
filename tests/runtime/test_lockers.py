"""Lockers: what adapters remember, durably, and never over what somebody else kept since."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from segue.core.contracts.lockers import Locker, NoLocker, Thing
from segue.errors import Invalid, Outdated
from segue.runtime.intake import OwnLocker
from segue.runtime.retrying import Patient
from segue.store import open_driver
from segue.testing import Chest
from segue.testing.adapters import FakeAdapter
from segue.testing.personas import Signal, Slack


@pytest.fixture(params=["chest", "sqlite", "postgres"])
async def lockers(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[Locker, Locker]]:
    """The lockers of two accounts."""
    if request.param == "chest":
        yield Chest(), Chest()
        return
    where = request.getfixturevalue("today_dsn") if request.param == "postgres" else str(tmp_path / "segue.db")
    driver = await open_driver(where)
    adapters: list[FakeAdapter] = [Signal().adapter(), Slack().adapter()]
    mine, other = (OwnLocker(Patient(driver), adapter) for adapter in adapters)
    yield mine, other
    await driver.close()


async def test_what_is_kept_is_read_by_the_beginning_of_its_name_in_its_account_alone(
    lockers: tuple[Locker, Locker],
) -> None:
    mine, other = lockers
    await mine.keep(
        {"a/1": Thing("one"), "a/2": Thing("two"), "a": Thing("none"), "b": Thing("three"), "ä": Thing("4")}
    )
    assert await mine.read("a/") == {"a/1": Thing("one", 1), "a/2": Thing("two", 1)}
    assert sorted(await mine.read()) == ["a", "a/1", "a/2", "b", "ä"]
    assert await mine.read("a/3") == {}
    assert await other.read() == {}


async def test_a_change_that_rests_on_an_old_version_changes_nothing(lockers: tuple[Locker, Locker]) -> None:
    mine, _ = lockers
    await mine.keep({"key": Thing("first")})
    with pytest.raises(Outdated, match="key was changed"):
        await mine.keep({"another": Thing("x"), "key": Thing("not there, it thought")})
    await mine.keep({"key": Thing("second", 1)})
    for late in (Thing("late", 1), Thing("", 1)):
        with pytest.raises(Outdated):
            await mine.keep({"another": Thing("x"), "key": late})
    assert await mine.read() == {"key": Thing("second", 2)}


async def test_what_is_empty_is_not_there(lockers: tuple[Locker, Locker]) -> None:
    mine, _ = lockers
    await mine.keep({"key": Thing("first"), "never": Thing("")})
    await mine.keep({"key": Thing("", 1)})
    assert await mine.read() == {}
    await mine.keep({"key": Thing("anew")})
    assert await mine.read() == {"key": Thing("anew", 1)}


async def test_nothing_seems_durable_without_a_locker() -> None:
    assert await NoLocker().read() == {}
    with pytest.raises(Invalid, match="there is none to keep key in"):
        await NoLocker().keep({"key": Thing("x")})
