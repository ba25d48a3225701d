"""Looks at a database without touching it: is it sound, is it today's, and what lies about in it."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import apsw

from segue.core.contracts.database import Row, Statement, Transaction
from segue.core.contracts.wakes import Wake
from segue.core.values import Live, Moment, Value
from segue.database.boot_clock import clock_in
from segue.database.shapes import difference, shape_in, unlike
from segue.database.sqlite_file import APPLICATION, SqliteFile
from segue.database.statements import POSTGRES, SQLITE, compile_for, migrations
from segue.database.transactions import one_by_one
from segue.errors import StoreCorrupt, StoreUnreachable

T = TypeVar("T")
LATE = 300.0
"""Seconds after which something that waits has waited long."""


class Pile(Value, frozen=True):
    """A number of left-over things, since when (or until when), and a fact about one of them."""

    count: int
    at: Moment | None = None
    why: str | None = None


class Alive(Value, frozen=True):
    """The replicas that are alive, and the dead ones that weren't buried, as numbers."""

    alive: int
    gone: int


class Tally(Value, frozen=True):
    """The left-over things in a database."""

    dead: Pile
    letters: Pile
    late: Pile
    idle: Pile
    """Sessions with turns that nobody takes."""
    failed: Pile
    """Turns that failed since one was last answered."""
    replicas: Alive


class Checked(Value, frozen=True):
    """The findings of a look at a database."""

    place: str
    version: int
    """0: it is empty."""
    newest: int
    """The version that this Segue knows."""
    damage: str = ""
    tally: Tally | None = None
    """None unless the database is today's."""


Count = Callable[[], Transaction[Tally]]
"""Counts what lies about."""


class ReadOnly(Live, frozen=True):
    """A database that is open for reading only."""

    place: str
    version: int
    newest: int
    fetch: Callable[[Statement], Awaitable[list[Row]]]
    damage: Callable[[], Awaitable[str]]
    """Looks for damage, through the whole file; returns what is wrong."""

    @property
    def is_todays(self) -> bool:
        """Whether today's queries can read it."""
        return self.version == self.newest

    async def read(self, whole: Transaction[T]) -> T:
        """Run a transaction that only reads, without a driver."""
        steps = one_by_one(whole)
        try:
            statement = next(steps)
            while True:
                statement = steps.send([] if isinstance(statement, Wake) else await self.fetch(statement))
        except StopIteration as done:
            result: T = done.value
            return result


async def check(where: str | Path, tally: Count) -> Checked:
    """Look at the database at an address, and count; raises `StoreError` if it can't be read."""
    async with reading(where) as found:
        damage = await found.damage()
        counted = await found.read(tally()) if found.is_todays and not damage else None
        return Checked(found.place, found.version, found.newest, damage, counted)


def reading(where: str | Path) -> AbstractAsyncContextManager[ReadOnly]:
    """The database at an address, open for reading only; raises `StoreError` if it can't be read."""
    address = str(where)
    server = address.startswith(("postgresql://", "postgres://"))
    return _reading_server(address) if server else _reading_file(Path(where))


@asynccontextmanager
async def _reading_file(path: Path) -> AsyncIterator[ReadOnly]:
    file = SqliteFile(path, time.time, 5.0, None)
    if alone := file.copied_alone():
        raise alone
    try:
        # Not by `File`, which can only write: a look must change nothing, not even whose turn it is.
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.Error as error:
        raise file.named(error) from error
    try:
        yield _of_file(connection, str(file.path))
    except apsw.Error as error:
        raise file.named(error) from error
    finally:
        connection.close()


def _of_file(connection: apsw.Connection, place: str) -> ReadOnly:
    connection.set_busy_timeout(5000)
    clock = clock_in(connection)
    connection.create_scalar_function("segue_now", lambda *_: clock(), 0)
    ((application,), (version,)) = connection.execute("pragma application_id; pragma user_version")
    newest = max(number for number, _ in migrations(SQLITE))
    ((objects,),) = connection.execute("select count(*) from sqlite_schema")
    if objects and application != APPLICATION:
        raise StoreCorrupt(f"{place} is another program's database. Name another file.")
    queries = compile_for(SQLITE)

    async def fetch(statement: Statement) -> list[Row]:
        return list(connection.execute(queries[statement.name].sql, statement.arguments))

    async def damage() -> str:
        ((sound,), *_) = connection.execute("pragma quick_check(1)").fetchall()
        if sound != "ok":
            return str(sound)
        known = 0 < version <= newest
        lacking = difference(version, shape_in(connection), migrations(SQLITE)) if known else ""
        return unlike(version, lacking) if lacking else ""

    return ReadOnly(place, version, newest, fetch, damage)


@asynccontextmanager
async def _reading_server(address: str) -> AsyncIterator[ReadOnly]:
    try:
        # As in opening: PostgreSQL's library is an extra.
        server_module = import_module("segue.database.postgres_server")
    except ModuleNotFoundError as error:
        raise StoreUnreachable("PostgreSQL needs its library: install `segue[postgres]`.") from error
    server = server_module.Server(address, "segue", 5.0)
    connection = await server.connect()
    queries = compile_for(POSTGRES)

    async def fetch(statement: Statement) -> list[Row]:
        query = queries[statement.name]
        found = await connection.fetch(query.sql, *(statement.arguments[name] for name in query.order))
        return [tuple(row) for row in found]

    try:
        version = await server.version(connection)
        newest = max(number for number, _ in migrations(POSTGRES))

        async def damage() -> str:
            lacking = await server.lacking(connection, version) if 0 < version <= newest else ""
            return unlike(version, lacking) if lacking else ""

        async with connection.transaction(readonly=True):
            yield ReadOnly(server.place, version, newest, fetch, damage)
    except server_module.TROUBLE as error:
        raise server.named(error) from error
    finally:
        await connection.close()
