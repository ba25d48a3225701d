"""From an empty database to today's, whoever is killed on the way and however many set out at once."""

import asyncio
import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest

from segue.core.contracts.database import Driver
from segue.core.contracts.probes import Point
from segue.database.postgres import Postgres
from segue.database.sqlite import Sqlite
from segue.database.statements import POSTGRES, SQLITE, compile_for, migrations
from segue.database.transactions import Steps
from segue.errors import StoreCorrupt, StoreTooNew
from tests.changes.small import everything, put, steps
from tests.database.child import open_either

ROOT = Path(__file__).parent.parent.parent
AT_ONCE = 8


def test_no_two_migrations_have_one_number() -> None:
    """Of two that were written beside each other, one would never run."""
    numbers = [number for number, _ in migrations(SQLITE)]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a database is, on either kind: a file that isn't there yet, or one that is empty."""
    if request.param == "postgres":
        dsn: str = request.getfixturevalue("postgres_dsn")
        return dsn
    return str(tmp_path / "segue.db")


def schema(database: str) -> Any:
    """Everything that the migrations made."""
    if database.startswith("postgresql://"):
        return asyncio.run(_postgres_schema(database))
    with contextlib.closing(apsw.Connection(database)) as connection:
        tables = "select type, name, sql from sqlite_schema order by name"
        return connection.execute(tables).fetchall(), connection.pragma("user_version")


async def _postgres_schema(database: str) -> Any:
    connection = await asyncpg.connect(database)
    try:
        columns = await connection.fetch(
            "select table_name, column_name, data_type, is_nullable from information_schema.columns "
            "where table_schema = 'segue' order by 1, 2"
        )
        indexes = await connection.fetch("select indexdef from pg_indexes where schemaname = 'segue' order by 1")
        versions = await connection.fetch("select number from segue.version order by 1")
        return [[tuple(row) for row in rows] for rows in (columns, indexes, versions)]
    finally:
        await connection.close()


def forget(database: str) -> None:
    """Empty it, so that everything begins again."""
    if database.startswith("postgresql://"):
        asyncio.run(_drop_schema(database))
    else:
        Path(database).unlink()


async def _drop_schema(database: str) -> None:
    connection = await asyncpg.connect(database)
    await connection.execute("drop schema segue cascade")
    await connection.close()


async def opened_with(database: str, some: Callable[..., Steps]) -> Driver:
    if database.startswith("postgresql://"):
        return await Postgres.open(database, queries={}, steps=some(POSTGRES))
    return await Sqlite.open(database, queries={}, steps=some(SQLITE))


def whole(database: str) -> Any:
    """Open it, see that it works, and give what it is made of."""

    async def look() -> dict[int, str]:
        db = await open_either(database)
        await db.write(put, 99)
        found = await db.read(everything)
        await db.close()
        return found

    found = asyncio.run(look())
    assert found[0] == "first"
    return schema(database), sorted(found)


def child(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.database.child", *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("label", "which", "written"),
    [
        (Point.MIGRATION_BEGUN, 1, []),
        (Point.MIGRATION_DONE, 1, []),
        (Point.MIGRATION_COMMITTED, 1, []),
        (Point.MIGRATION_BEGUN, 2, []),
        (Point.MIGRATION_DONE, 2, []),
        (Point.MIGRATION_COMMITTED, 2, []),
        (Point.WRITE_BEGUN, 1, []),
        (Point.WRITE_DONE, 1, []),
        (Point.WRITE_COMMITTED, 1, [1]),
    ],
)
def test_whoever_is_killed_leaves_a_step_done_or_not_done(
    database: str, label: Point, which: int, written: list[int]
) -> None:
    with child("die", database, label, str(which)) as killed:
        assert killed.wait() == -signal.SIGKILL
    made, found = whole(database)
    assert found == [0, *written, 99]
    forget(database)
    assert made == whole(database)[0]


def test_eight_processes_open_a_new_database_at_once(database: str) -> None:
    with contextlib.ExitStack() as stack:
        children = [stack.enter_context(child("race", database, str(n))) for n in range(1, AT_ONCE + 1)]
        for one in children:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"
        for one in children:
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.flush()
        for one in children:
            assert one.stdout is not None
            assert one.stdout.readline() == "done\n"
    _, found = whole(database)
    assert found == [0, *range(1, AT_ONCE + 1), 99]


async def test_a_step_is_not_done_twice(database: str) -> None:
    for _ in range(3):
        db = await open_either(database)
        assert await db.read(everything) == {0: "first"}
        await db.close()


async def test_a_database_of_yesterday_is_brought_up_to_date(database: str) -> None:
    await (await opened_with(database, lambda dialect: steps(dialect)[:1])).close()
    db = await open_either(database)
    assert await db.read(everything) == {0: "first"}
    await db.close()


async def test_a_database_of_tomorrow_is_left_alone(database: str) -> None:
    await (await opened_with(database, lambda dialect: [*steps(dialect), (7, "create table more (n integer)")])).close()
    before = await asyncio.to_thread(schema, database)
    with pytest.raises(StoreTooNew, match=r"version 7 .* up to 2\. Install a newer Segue"):
        await open_either(database)
    assert await asyncio.to_thread(schema, database) == before


async def test_a_step_that_fails_leaves_nothing_behind(database: str) -> None:
    def spoilt(dialect: Any) -> Steps:
        return [*steps(dialect)[:1], (2, "create table half (n integer); insert into half values (1); nonsense;")]

    with pytest.raises(Exception, match="nonsense"):
        await opened_with(database, spoilt)
    db = await open_either(database)
    assert await db.read(everything) == {0: "first"}
    await db.close()
    assert "half" not in str(await asyncio.to_thread(schema, database))


async def test_a_schema_of_another_program_is_left_alone(postgres_dsn: str) -> None:
    connection = await asyncpg.connect(postgres_dsn)
    await connection.execute("create schema segue; create table segue.bookmarks (address text)")
    with pytest.raises(StoreCorrupt, match="schema segue is another program's"):
        await open_either(postgres_dsn)
    assert await connection.fetchval("select count(*) from pg_class where relnamespace = 'segue'::regnamespace") == 1
    await connection.close()


async def test_a_schema_that_somebody_made_for_us_is_used(postgres_dsn: str) -> None:
    connection = await asyncpg.connect(postgres_dsn)
    await connection.execute("create schema segue")
    await connection.close()
    db = await open_either(postgres_dsn)
    assert await db.read(everything) == {0: "first"}
    await db.close()


async def test_rows_that_a_step_leaves_pointing_nowhere_stop_it(tmp_path: Path) -> None:
    path = str(tmp_path / "segue.db")
    with pytest.raises(StoreCorrupt, match="row of marks points at none"):
        await opened_with(path, lambda dialect: [*steps(dialect), (3, "insert into marks values (77)")])
    db = await open_either(path)
    assert await db.read(everything) == {0: "first"}
    await db.close()


async def test_todays_queries_fit_todays_schema_on_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "segue.db"
    await (await Sqlite.open(path)).close()
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.create_scalar_function("segue_now", lambda *_: 0.0, 0)
        connection.create_scalar_function("segue_beats", lambda *_: 0, 1)
        # What only PostgreSQL has to say is nothing here.
        for query in filter(lambda query: query.sql, compile_for(SQLITE).values()):
            connection.execute(f"explain {query.sql}", dict.fromkeys(query.order))


async def test_todays_queries_fit_todays_schema_on_postgres(postgres_dsn: str) -> None:
    await (await Postgres.open(postgres_dsn)).close()
    connection = await asyncpg.connect(postgres_dsn, server_settings={"search_path": "segue"})
    for query in compile_for(POSTGRES).values():
        await connection.prepare(query.sql)
    await connection.close()
