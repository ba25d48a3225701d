import asyncpg
import pytest

from tests.postgres import Postgres


async def test_the_server_answers(postgres_dsn: str) -> None:
    connection = await asyncpg.connect(postgres_dsn)
    assert await connection.fetchval("select 1") == 1
    await connection.close()


@pytest.mark.parametrize("_turn", ["first", "second"])
async def test_every_test_has_an_empty_database_and_no_special_rights(postgres_dsn: str, _turn: str) -> None:
    connection = await asyncpg.connect(postgres_dsn)
    await connection.execute("create table lanes (id text)")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.execute("create role somebody superuser")
    await connection.close()


async def test_a_durable_server_keeps_commits_over_a_crash(durable_postgres: Postgres) -> None:
    dsn = durable_postgres.dsn(durable_postgres.create_database())
    connection = await asyncpg.connect(dsn)
    assert await connection.fetchval("show fsync") == "on"
    await connection.execute("create table said (text text)")
    await connection.execute("insert into said values ('hello')")

    durable_postgres.stop()
    with pytest.raises((OSError, asyncpg.PostgresError)):
        await connection.fetchval("select 1")
    connection.terminate()

    durable_postgres.start()
    connection = await asyncpg.connect(dsn)
    assert await connection.fetchval("select text from said") == "hello"
    await connection.close()
