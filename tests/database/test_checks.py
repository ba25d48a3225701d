"""Checks: a look at either database finds what lies about in it, and changes nothing."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from segue.changes.exchange import deliveries, letters, replicas
from segue.changes.tally import tally
from segue.core.lanes import Address
from segue.database.checks import Alive, Pile, Tally, check
from segue.errors import StoreCorrupt, StoreUnreachable
from tests.changes.world import Engine, World

THERE = Address("telegram", "bot", chat="there")


@pytest.fixture
async def world(engine: Engine, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """A database in which nobody lives, since a tally counts everybody's rows."""
    made = await World.open(
        engine, tmp_path / "segue.db" if engine is Engine.SQLITE else str(request.getfixturevalue("today_dsn"))
    )
    yield made
    await made.close()


async def look(world: World) -> Tally:
    checked = await check(world.where, tally)
    assert checked.tally is not None
    return checked.tally


async def test_nothing_lies_about_in_a_new_database(world: World) -> None:
    checked = await check(world.where, tally)
    assert (checked.version, checked.damage) == (checked.newest, "")
    assert checked.tally == Tally(Pile(0), Pile(0), Pile(0), Pile(0), Pile(0), Alive(0, 0))


async def test_dead_letters_are_counted(world: World) -> None:
    for at, why in ((1.0, "gone"), (2.0, "blocked")):
        await world.store.driver.write(deliveries.notify, THERE, "hi", why, (), time.time())
        [out] = await world.store.driver.write(deliveries.outgoing, "r", "telegram", "bot", 1)
        await world.store.driver.write(deliveries.give_up, out, why, at)
        await world.store.driver.write(letters.bury, "telegram/bot", "{", f"not JSON {why}", at)
    found = await look(world)
    assert found.dead == Pile(2, 2.0, "blocked")
    assert found.letters == Pile(2, 2.0, "not JSON blocked")


async def test_only_what_has_waited_long_is_late(world: World) -> None:
    await world.store.driver.write(deliveries.notify, THERE, "new", "k1", (), time.time())
    assert (await look(world)).late.count == 0
    await world.store.driver.write(deliveries.notify, THERE, "old", "k2", (), 5.0)
    assert (await look(world)).late == Pile(1, 5.0)


async def test_turns_that_nobody_takes_are_counted(world: World) -> None:
    queued = await world.hear("ann", "hello")
    assert (await look(world)).idle.count == 0
    await world.raw("update sessions set due = 7 where id = $1", queued.session)
    assert (await look(world)).idle == Pile(1, 7.0)


async def test_turns_that_failed_are_counted_until_one_is_answered(world: World) -> None:
    first, second = await world.hear("ann", "one"), await world.hear("bob", "two")
    failed = "update turns set outcome = 'failed', finished = 5, error = 'KeyError(1)' where session = $1"
    await world.raw(failed, first.session)
    assert (await look(world)).failed == Pile(1, 5.0, "KeyError(1)")
    await world.raw("update turns set outcome = 'answered', finished = 6 where session = $1", second.session)
    assert (await look(world)).failed.count == 0


async def test_replicas_are_alive_or_gone(world: World) -> None:
    for name, seconds in (("a", 60.0), ("b", 60.0), ("c", -60.0)):
        await world.store.driver.write(replicas.join, name, seconds)
    found = await look(world)
    assert found.replicas == Alive(2, 1)


async def test_an_older_or_newer_database_is_told_and_not_changed(world: World) -> None:
    sql = {Engine.SQLITE: "pragma user_version = 99", Engine.POSTGRES: "insert into version values (99)"}
    back = {Engine.SQLITE: "", Engine.POSTGRES: "delete from version where number = 99"}
    await world.raw(sql[world.engine])
    try:
        checked = await check(world.where, tally)
        assert (checked.version, checked.tally) == (99, None)
        assert checked.newest < 99
    finally:
        if back[world.engine]:
            await world.raw(back[world.engine])


async def test_an_empty_file_is_version_0_and_stays_empty(tmp_path: Path) -> None:
    file = tmp_path / "segue.db"
    file.touch()
    checked = await check(file, tally)
    assert (checked.version, checked.tally) == (0, None)
    assert file.read_bytes() == b""


async def test_what_is_no_database_of_ours_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnreachable, match=r"none\.db"):
        await check(tmp_path / "none.db", tally)
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "text.db").write_text("only text, again and again. " * 100)
    with pytest.raises(StoreCorrupt, match="isn't a database"):
        await check(tmp_path / "text.db", tally)
    apsw.Connection(str(tmp_path / "other.db")).execute("create table t (x)")
    with pytest.raises(StoreCorrupt, match="another program's"):
        await check(tmp_path / "other.db", tally)


async def test_damage_is_found_where_nobody_reads(tmp_path: Path) -> None:
    world = await World.open(Engine.SQLITE, tmp_path / "segue.db")
    [(page,)] = await world.raw("select rootpage from sqlite_schema where name = 'journal'")
    [(size,)] = await world.raw("pragma page_size")
    await world.raw("pragma wal_checkpoint(truncate)")
    await world.close()
    raw = bytearray((tmp_path / "segue.db").read_bytes())
    raw[(page - 1) * size : page * size] = b"\xff" * size
    (tmp_path / "segue.db").write_bytes(raw)
    checked = await check(tmp_path / "segue.db", tally)
    assert checked.damage
    assert checked.tally is None
