"""Batches: what is written together is sent together, and nothing else changes by that."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from segue.changes.rows import must
from segue.core.contracts.database import Driver, Statement, Together, Transaction
from segue.database.postgres import Postgres
from segue.database.sqlite import Sqlite
from segue.database.statements import POSTGRES, SQLITE, _compile
from segue.errors import Refusal, Refused, StoreConflict, StoreLocked
from tests.changes.small import steps
from tests.changes.world import Engine
from tests.database.wire import Wire

_QUERIES = {
    "put": "insert into words (n, word) values (:n, :word)",
    "put_new": "insert into words (n, word) values (:n, :word) on conflict (n) do nothing {counted}",
    "change": "update words set word = :word where n = :n returning n, word, n / 2.0 as half, n > 1 as large",
    "hold": "select word from words where n = :n {for_update}",
    "get": "select n, word, n / 2.0 as half, n > 1 as large from words where n = :n",
    "all": "select n, word from words order by n",
    "mark": "savepoint here",
}


@pytest.fixture
async def db(engine: Engine, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Driver]:
    opened: Driver
    if engine is Engine.SQLITE:
        queries = {name: _compile(SQLITE, text) for name, text in _QUERIES.items()}
        opened = await Sqlite.open(tmp_path / "segue.db", queries=queries, steps=steps(SQLITE))
    else:
        opened = await postgres(request.getfixturevalue("postgres_dsn"))
    yield opened
    await opened.close()


async def postgres(dsn: str) -> Postgres:
    queries = {name: _compile(POSTGRES, text) for name, text in _QUERIES.items()}
    return await Postgres.open(dsn, queries=queries, steps=steps(POSTGRES), connections=1)


def say(name: str, n: int, word: str = "") -> Statement:
    return Statement(name, {"n": n, "word": word} if name in {"put", "put_new", "change"} else {"n": n})


def everything() -> Transaction[dict[int, str]]:
    return {int(n): str(word) for n, word in (yield Statement("all", {}))}


def exchange(n: int) -> Transaction[Any]:
    """Look, then write and read what was written, and no more."""
    yield say("get", 0)
    yield must(say("hold", 0))
    yield say("put", n, "one")
    yield must(say("put_new", n + 1, "two"))
    changed, held, found = yield Together((say("change", n, "x"), say("hold", n + 1), say("get", n + 1)), last=True)
    return [list(row) for rows in (changed, held, found) for row in rows]


async def test_rows_of_a_batch_are_those_of_its_statements(db: Driver) -> None:
    for n in range(1, 40, 2):  # one by one at first, then in one call
        assert await db.write(exchange, n) == [
            [n, "x", n / 2, n > 1],
            ["two"],
            [n + 1, "two", (n + 1) / 2, True],
        ]


def with_a_mark(n: int) -> Transaction[Any]:
    yield say("put", n, "one")
    yield Statement("mark", {})
    rows, none = yield Together((say("get", n), say("put", n + 1, "two")), last=True)
    return [list(row) for row in (*rows, *none)]


async def test_a_savepoint_and_a_write_that_returns_nothing_may_stand_among_them(db: Driver) -> None:
    for n in range(1, 20, 2):
        assert await db.write(with_a_mark, n) == [[n, "one", n / 2, n > 1]]


def collide(n: int) -> Transaction[None]:
    yield say("put", n, "kept")
    yield must(say("put_new", 0, "nobody's"))


def look_and_collide(n: int) -> Transaction[None]:
    yield say("put", n, "kept")
    yield Together((must(say("change", 1000, "no such")), say("get", 0)), last=True)


@pytest.mark.parametrize("transaction", [collide, look_and_collide])
async def test_what_must_change_something_and_does_not_takes_all_back(
    db: Driver, transaction: Callable[[int], Transaction[None]]
) -> None:
    for n in range(1, 6):
        with pytest.raises(StoreLocked, match="100 times"):
            await db.write(transaction, n)
    assert await db.read(everything) == {0: "first"}


def write_both(n: int) -> Transaction[None]:
    yield say("put", n, "fine")
    yield say("put", n, "again")


async def test_a_rule_that_refuses_one_of_a_batch_takes_all_back(db: Driver) -> None:
    for n in range(1, 6):
        with pytest.raises(StoreConflict):
            await db.write(write_both, n)
    assert await db.read(everything) == {0: "first"}


def refuse(n: int) -> Transaction[None]:
    yield say("put", n, "never")
    raise Refused(Refusal.NOT_FOUND)


async def test_what_a_refused_transaction_wrote_is_gone(db: Driver) -> None:
    with pytest.raises(Refused):
        await db.write(refuse, 1)
    assert await db.read(everything) == {0: "first"}


def go_on(n: int) -> Transaction[None]:
    yield Together((say("put", n, "kept"),), last=True)
    yield say("get", n)


async def test_nothing_follows_what_is_called_the_last(db: Driver) -> None:
    with pytest.raises(RuntimeError, match="went on"):
        await db.write(go_on, 1)


async def trips(db: Driver, wire: Wire) -> int:
    """Round trips of an exchange, when it isn't the first one."""
    before = 0
    for n in range(1, 12, 2):
        before = wire.trips
        await db.write(exchange, n)
    return wire.trips - before


async def test_a_batch_takes_one_round_trip_and_a_look_another(postgres_dsn: str) -> None:
    async with Wire.to(postgres_dsn) as wire:
        db = await postgres(wire.dsn)
        assert await trips(db, wire) == 2
        await db.close()


async def test_without_the_right_to_temporary_things_statements_go_one_by_one(postgres_dsn: str) -> None:
    async with Wire.to(postgres_dsn) as wire:
        db = await postgres(wire.dsn)
        db._batches._allowed = False
        assert await trips(db, wire) == 9  # the look, begin, six and the commit
        await db.close()
