"""Databases of every version open with today's Segue, and say the same as before."""

import gzip
import json
from pathlib import Path

import apsw
import apsw.ext
import asyncpg
import pytest

from segue.changes.tally import tally
from segue.core.lanes import Identity
from segue.database.checks import check
from segue.database.statements import SQLITE, migrations
from segue.errors import StoreCorrupt
from segue.store import open_store
from tests.database.kept_versions import FOLDER, SAID, kept, unpacked

TODAY = max(number for number, _ in migrations(SQLITE))


@pytest.mark.parametrize("file", kept(), ids=lambda file: file.name)
async def test_an_older_database_opens_and_says_the_same(file: Path, tmp_path: Path) -> None:
    path = unpacked(file, tmp_path / "segue.db")
    raw = apsw.Connection(str(path))
    [(identity,), *_] = raw.execute(
        "select key from identities where person in (select owner from sessions)"
    ).fetchall()
    raw.close()
    async with await open_store(path) as store:
        ann = await store.person(Identity.parse(str(identity)))
        cats = await store.session(await store.find("Cats", ann), ann)
        assert [entry.text for entry in await store.path(cats.id) if entry.text] == SAID
        assert len(await store.sessions(ann)) == 2
        assert await store.search("lions", ann)
        # What is written today beside it is found, too.
        await store.say(cats.id, ann, "and tigers")
        await store.index()
        assert [entry.text for entry in await store.search("tigers", ann)] == ["and tigers"]
    raw = apsw.Connection(str(path))
    assert raw.pragma("user_version") == TODAY
    assert raw.execute("select 1 from settings where name = 'vacuum'").fetchall() == []
    raw.close()


def test_the_newest_version_is_kept() -> None:
    """A database of it may be in use: `python -m tests.database.kept_versions` keeps one."""
    newest = FOLDER / f"{TODAY:04}.db.gz"
    assert newest in kept()
    assert newest.with_name(f"{TODAY:04}.queries.json.gz").exists()


def queries_in(file: Path) -> dict[str, dict[str, str]]:
    """The queries of an older program, by database and name."""
    found: dict[str, dict[str, str]] = json.loads(gzip.decompress(file.read_bytes()))
    return found


def edited(path: Path) -> None:
    """Make a database as it was when a migration had other columns."""
    raw = apsw.Connection(str(path))
    raw.execute("alter table usage drop column size")
    raw.close()


async def test_a_database_whose_tables_are_not_those_of_its_version_is_refused_in_words(tmp_path: Path) -> None:
    path = unpacked(kept()[0], tmp_path / "segue.db")
    edited(path)
    words = "it says that it is of version 6, but its table usage has no column size"
    with pytest.raises(StoreCorrupt, match=words):
        await open_store(path)
    assert words in (await check(path, tally)).damage


async def test_a_schema_on_a_server_that_is_not_that_of_its_version_is_refused_in_words(today_dsn: str) -> None:
    connection = await asyncpg.connect(today_dsn)
    await connection.execute("alter table segue.usage rename column size to extent")
    try:
        words = f"it says that it is of version {TODAY}, but its table usage has no column size"
        with pytest.raises(StoreCorrupt, match=words):
            await open_store(today_dsn)
        assert words in (await check(today_dsn, tally)).damage
    finally:
        await connection.execute("alter table segue.usage rename column extent to size")
        await connection.close()


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.queries.json.gz")), ids=lambda file: file.name)
async def test_an_older_program_beside_this_one_finds_all_that_it_asks_for(file: Path, today_dsn: str) -> None:
    """Two versions run side by side while one replica after the other is upgraded."""
    queries = queries_in(file)
    raw = apsw.Connection(":memory:")
    raw.create_scalar_function("segue_now", lambda *_: 0.0, 0)
    raw.create_scalar_function("segue_beats", lambda *_: 0, 1)
    for _, script in migrations(SQLITE):
        raw.execute(script).fetchall()
    for name, sql in queries["sqlite"].items():
        # What one database needs no statement for is empty there.
        if sql and not sql.startswith(("savepoint", "rollback", "release")):
            assert apsw.ext.query_info(raw, sql).query, name
    raw.close()
    connection = await asyncpg.connect(today_dsn, server_settings={"search_path": "segue"})
    for name, sql in queries["postgres"].items():
        if not sql.startswith(("savepoint", "rollback", "release")):
            assert (await connection.prepare(sql)).get_query(), name
    await connection.close()


async def test_free_pages_of_an_older_database_hold_nothing_after_the_upgrade(tmp_path: Path) -> None:
    path = unpacked(kept()[0], tmp_path / "segue.db")
    raw = apsw.Connection(str(path))
    word = "zyxwcanary"
    raw.execute("pragma secure_delete = off").fetchall()
    raw.execute("create table t (x)")
    raw.execute("insert into t values (?)", (f"{word} " * 5000,))
    raw.execute("drop table t")
    raw.close()
    assert word.encode() in path.read_bytes()
    async with await open_store(path):
        """It is upgraded."""
    assert word.encode() not in path.read_bytes()
