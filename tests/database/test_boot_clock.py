"""The boot clock: no jump of the time of day moves it; a new boot sets it anew and ends every lease."""

from functools import partial
from pathlib import Path

import apsw
import pytest

from segue.changes.exchange import replicas
from segue.database import boot_clock
from segue.database.boot_clock import set_clock
from segue.database.sqlite import Sqlite
from segue.errors import Fenced


@pytest.fixture
async def raw(tmp_path: Path) -> apsw.Connection:
    """A database of Segue's, as it is."""
    driver = await Sqlite.open(tmp_path / "segue.db")
    await driver.write(replicas.join, "r1", 60.0)
    await driver.close()
    return apsw.Connection(str(tmp_path / "segue.db"))


def test_the_time_of_day_may_jump(raw: apsw.Connection) -> None:
    before = set_clock(raw)()
    for wall in (before - 3600, before + 9 * 86400, before):
        assert before <= set_clock(raw, partial(float, wall))() < before + 60
    assert raw.execute("select expires > 0 from replicas").fetchall() == [(1,)]
    raw.close()


def test_a_new_boot_ends_leases_and_never_goes_back(raw: apsw.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    before = set_clock(raw)()
    monkeypatch.setattr(boot_clock, "boot_id", lambda: "another boot")
    monkeypatch.setattr(boot_clock, "since_boot", lambda: 5.0)
    after = set_clock(raw, lambda: before - 3600)()
    assert after >= before + 50  # the lease that was given last ends later than that
    assert raw.execute("select expires from replicas").fetchall() == [(0.0,)]
    raw.close()


async def test_a_lease_holds_and_ends_whatever_the_time_of_day_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = await Sqlite.open(tmp_path / "segue.db")
    start, passed = boot_clock.since_boot(), 0.0
    monkeypatch.setattr(boot_clock, "since_boot", lambda: start + passed)
    await driver.write(replicas.join, "r1", 5.0)
    monkeypatch.setattr("time.time", lambda: 1e9)
    await driver.write(replicas.beat, "r1", 5.0)
    monkeypatch.setattr("time.time", lambda: 4e9)
    await driver.write(replicas.beat, "r1", 5.0)
    passed = 6.0
    await driver.write(replicas.join, "r2", 5.0)
    await driver.write(replicas.beat, "r2", 5.0)
    with pytest.raises(Fenced):
        await driver.write(replicas.beat, "r1", 5.0)
    await driver.close()
