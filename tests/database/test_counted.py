"""A statement that only tells whether it changed anything: both databases answer with a row for each one changed."""

from pathlib import Path

import pytest

from segue.core.contracts.database import Driver, Row, Statement, Transaction
from segue.database.postgres import Postgres
from segue.database.sqlite import Sqlite
from segue.database.statements import POSTGRES, SQLITE, _compile
from tests.changes.small import steps
from tests.changes.world import Engine

_QUERIES = {
    "put": "insert into words (n, word) values (:n, 'word') on conflict (n) do nothing {counted}",
    "change": "update words set word = 'other' where n <= :n {counted}",
}


@pytest.fixture
async def db(engine: Engine, request: pytest.FixtureRequest, tmp_path: Path) -> Driver:
    if engine is Engine.SQLITE:
        queries = {name: _compile(SQLITE, text) for name, text in _QUERIES.items()}
        return await Sqlite.open(tmp_path / "segue.db", queries=queries, steps=steps(SQLITE))
    queries = {name: _compile(POSTGRES, text) for name, text in _QUERIES.items()}
    return await Postgres.open(request.getfixturevalue("postgres_dsn"), queries=queries, steps=steps(POSTGRES))


def run(name: str, n: int) -> Transaction[list[Row]]:
    return (yield Statement(name, {"n": n}))


async def test_a_row_comes_back_for_each_one_changed(db: Driver) -> None:
    cases = [("put", 1, 1), ("put", 0, 0), ("change", 5, 2), ("change", 0, 1), ("put", 0, 0), ("change", -1, 0)]
    for name, n, count in cases:
        assert [tuple(row) for row in await db.write(run, name, n)] == [(1,)] * count, (name, n)
    await db.close()
