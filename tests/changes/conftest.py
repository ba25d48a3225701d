"""Each test of the store runs on both databases."""

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import asyncpg
import pytest

from tests.changes.world import Engine, World
from tests.postgres import Postgres


@pytest.fixture(params=[Engine.SQLITE, Engine.POSTGRES], ids=lambda engine: engine.value)
def engine(request: pytest.FixtureRequest) -> Engine:
    """The database to run on."""
    found: Engine = request.param
    return found


@pytest.fixture(scope="session")
def migrated(postgres: Postgres, today: str) -> str:
    """A database with today's schema, which tests may write to."""
    return postgres.create_database(today)


@pytest.fixture
def emptied(postgres: Postgres, migrated: str) -> Callable[[], Awaitable[None]]:
    """Takes everything out of that database, which is much faster than making a new one."""

    async def empty() -> None:
        await _empty(postgres.dsn(migrated, "postgres"))

    return empty


@pytest.fixture
async def emptied_dsn(postgres: Postgres, migrated: str, emptied: Callable[[], Awaitable[None]]) -> str:
    """That database without what earlier tests left in it."""
    await emptied()
    return postgres.dsn(migrated)


async def _empty(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    tables = await connection.fetch(
        "select tablename from pg_tables where schemaname = 'segue' and tablename <> 'version'"
    )
    # As a replica: no trigger and no reference stands in the way.
    deletes = [f"delete from segue.{table}" for (table,) in tables]
    await connection.execute(";".join(["set session_replication_role = replica", *deletes]))
    await connection.close()


@pytest.fixture
def where(engine: Engine, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database."""
    if engine is Engine.SQLITE:
        return str(shutil.copy(request.getfixturevalue("today_file"), tmp_path / "segue.db"))
    dsn: str = request.getfixturevalue("emptied_dsn")
    return dsn


@pytest.fixture
async def world(engine: Engine, where: str) -> AsyncIterator[World]:
    """A store with a clock that the test moves."""
    made = await World.open(engine, where)
    yield made
    await made.close()
