"""PostgreSQL: many machines, each with a pool of connections, share one schema."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar, cast

import asyncpg

from segue.core.contracts.database import URGENT, Row, Statement, Together, Transaction
from segue.core.contracts.probes import Point, Probe
from segue.core.contracts.wakes import Wake
from segue.database.postgres_batches import Batches, Part
from segue.database.postgres_hints import Channel
from segue.database.postgres_server import TROUBLE, Server
from segue.database.statements import POSTGRES, Compiled, compile_for, migrations
from segue.database.transactions import (
    ATTEMPTS,
    Moved,
    Steps,
    never_settled,
    refuse_moved,
    refuse_unsound,
    unheeded,
    went_on,
)
from segue.errors import OutcomeUnknown, StoreClosed

P = ParamSpec("P")
T = TypeVar("T")
_Done = tuple[Any, list[Wake]]
_WRITE = "begin isolation level read committed"
_READ = "begin isolation level repeatable read read only"
_IN_THE_WAY = (
    Moved,
    asyncpg.DeadlockDetectedError,
    asyncpg.InvalidCachedStatementError,
    asyncpg.SerializationError,
)
"""Somebody else came between: the same transaction gets through when it runs again."""


class Postgres:
    """Runs transactions against one schema of a PostgreSQL database."""

    copies = (
        "WAL archives, standbys and backups of the database",
        "free space in its files until that is used again",
        "what was typed in terminals on other machines",
    )

    def __init__(
        self, server: Server, pool: "Pool", channel: Channel, queries: Mapping[str, Compiled], probe: Probe
    ) -> None:
        self._server = server
        self._pool = pool
        self._first = Pool(server.connect_for_transactions, 1)
        """For what is urgent."""
        self._channel = channel
        self._kinds = {name: _kind(query) for name, query in queries.items()}
        self._batches = Batches(queries)
        self._probe = probe
        self._running = 0
        self._closing = asyncio.Event()
        self._finished = asyncio.Event()

    @classmethod
    async def open(
        cls,
        dsn: str,
        *,
        schema: str = "segue",
        queries: Mapping[str, Compiled] | None = None,
        steps: Steps | None = None,
        probe: Probe = unheeded,
        patience: float = 5.0,
        connections: int = 10,
    ) -> Self:
        """Open the database, its schema made or brought up to date; for a lock it waits `patience` seconds."""
        server = Server(dsn, schema, patience)
        await server.migrate(migrations(POSTGRES) if steps is None else steps, probe)
        pool = Pool(server.connect_for_transactions, connections)
        channel = Channel(server)
        await channel.open()
        return cls(server, pool, channel, compile_for(POSTGRES) if queries is None else queries, probe)

    async def write(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run it once; when this returns, what it did is durable."""
        pool = self._first if transaction in URGENT else self._pool
        return cast(T, await self._settle(_WRITE, self._probe, lambda: transaction(*args, **kwargs), pool))

    async def read(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one that only reads, on a snapshot, beside the writers."""
        return cast(T, await self._settle(_READ, unheeded, lambda: transaction(*args, **kwargs), self._pool))

    async def scrub(self) -> bool:
        """Vacuum what lost its words, and build the indexes of words anew: an index keeps a word that no row has."""
        return await self._server.scrub()

    async def damage(self) -> str:
        """Find nothing: the server checks its own pages, and says so when it reads a damaged one."""
        return ""

    async def hint(self, topic: str) -> None:
        """Wake every process that shares this database."""
        refuse_unsound({"topic": topic})
        self._channel.send(topic)

    def listen(self, heard: Callable[[str], None]) -> Callable[[], None]:
        """Call back, on the event loop, for each hint; an empty one says that some may have been lost."""
        return self._channel.listen(heard)

    async def close(self) -> None:
        """Finish what was accepted and let go of the database."""
        if not self._closing.is_set():
            self._closing.set()
            if self._running:
                await self._finished.wait()
            await self._channel.close()
            await self._pool.close()
            await self._first.close()

    async def _settle(self, begin: str, probe: Probe, transaction: Callable[[], Transaction[Any]], pool: "Pool") -> Any:
        """Run it until it gets through: again if somebody came between, once more if its connection broke."""
        if self._closing.is_set():
            raise StoreClosed(f"{self._server.place} was closed. Open it again.")
        self._running += 1
        breaks = 0
        try:
            for _ in range(ATTEMPTS):
                try:
                    result, wakes = await self._attempt(begin, probe, transaction, pool)
                except _IN_THE_WAY:
                    await asyncio.sleep(0)
                except _Broken as broken:
                    breaks += 1
                    if breaks > 1:
                        raise self._server.named(broken.error) from broken.error
                    pool.forget()
                except asyncpg.PostgresError as error:
                    raise self._server.named(error) from None  # its text may quote what people wrote
                else:
                    for wake in wakes:
                        self._channel.wake(wake)
                    return result
            raise never_settled(self._server.place)
        finally:
            self._running -= 1
            if self._closing.is_set() and not self._running:
                self._finished.set()

    async def _attempt(
        self, begin: str, probe: Probe, transaction: Callable[[], Transaction[Any]], pool: "Pool"
    ) -> _Done:
        async with pool.lend() as connection:
            course = _Course(connection, self._kinds, self._batches, begin, probe)
            try:
                result = await course.run(transaction())
            except asyncio.CancelledError:
                connection.terminate()
                raise
            except BaseException as error:
                if isinstance(error, TROUBLE) and _gone(connection, error):
                    connection.terminate()
                    raise self._lost(begin, course.at, error) from error
                if connection.is_in_transaction():
                    with contextlib.suppress(*TROUBLE):  # else the connection ends, which takes it back as well
                        await connection.execute("rollback")
                raise
            probe(Point.WRITE_COMMITTED)
            return result, course.wakes

    def _lost(self, begin: str, at: Point | None, error: Exception) -> Exception:
        if begin is _WRITE and at is Point.WRITE_DONE:
            place = self._server.place
            return OutcomeUnknown(f"{place}: the connection broke during the commit. Look before you repeat it.")
        return _Broken(error)


class _Kind(NamedTuple):
    """A query, and how much of a hurry there is to send it."""

    sql: str
    order: tuple[str, ...]
    silent: bool
    reads: bool


@cache
def _kind(query: Compiled) -> _Kind:
    return _Kind(query.sql, query.order, query.silent, query.reads)


class _Course:
    """One try of a transaction on a connection.

    What only reads, before anything is written or locked, needs no begin: each statement sees what is committed by
    then, as it would after one. What is written last goes with its commit, in one call if its shape is known.
    """

    def __init__(
        self, connection: asyncpg.Connection, kinds: Mapping[str, _Kind], batches: Batches, begin: str, probe: Probe
    ) -> None:
        self._connection = connection
        self._kinds = kinds
        self._batches = batches
        self._begin = begin
        self._probe = probe
        self._begun = False
        self._over = False
        self._pending: list[Statement] = []
        """Statements whose rows nobody reads, to be sent with the next that is read."""
        self.at: Point | None = None
        self.wakes: list[Wake] = []

    async def run(self, steps: Transaction[Any]) -> Any:
        """The result of the transaction, once it is committed."""
        rows: Any = None
        if self._begin is _READ:
            await self._open()
        try:
            while True:
                step = steps.send(rows)
                if isinstance(step, Wake):
                    self.wakes.append(step)
                    rows = []
                elif self._over:
                    raise went_on()
                elif isinstance(step, Together):
                    rows = await self._send(step.statements, last=step.last)
                elif step.must or self._kinds[step.name].silent:
                    refuse_unsound(step.arguments)
                    self._pending.append(step)
                    rows = []
                else:
                    [rows] = await self._send((step,))
        except StopIteration as done:
            if self._pending:
                await self._send((), last=True)
            elif not self._over:
                await self._close()
            return done.value

    async def _send(self, wanted: Sequence[Statement], *, last: bool = False) -> list[list[Row]]:
        """Send what is pending and what is wanted; returns the rows of the latter."""
        for statement in wanted:
            refuse_unsound(statement.arguments)
        statements, first = [*self._pending, *wanted], len(self._pending)
        self._pending = []
        shape = tuple(Part(s.name, s.must, n >= first) for n, s in enumerate(statements))
        at_once = len(shape) == 1 or await self._batches.ready(self._connection, shape)
        if not (self._begun or all(self._kinds[s.name].reads for s in statements)):
            if last and at_once:
                self._probe(Point.WRITE_BEGUN)
                self._probe(Point.WRITE_DONE)
                self.at = Point.WRITE_DONE
            else:
                await self._open()
        if at_once and len(shape) > 1:
            rows = await self._batches.run(self._connection, shape, statements)
        else:
            rows = [await self._one(statement) for statement in statements][first:]
        if last:
            await self._close()
        return rows

    async def _one(self, statement: Statement) -> list[Row]:
        sql, order, _, _ = self._kinds[statement.name]
        rows: list[Any] = await self._connection.fetch(sql, *[statement.arguments[name] for name in order])
        refuse_moved(statement, rows)
        return rows

    async def _open(self) -> None:
        await self._connection.execute(self._begin)
        self._begun = True
        self._probe(Point.WRITE_BEGUN)
        self.at = Point.WRITE_BEGUN

    async def _close(self) -> None:
        self._over = True
        if self._begun:
            self._probe(Point.WRITE_DONE)
            self.at = Point.WRITE_DONE
            await self._connection.execute("commit")


class _Broken(Exception):
    """The connection ended before anything was committed on it."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def _gone(connection: asyncpg.Connection, error: Exception) -> bool:
    """Whether the connection ended with this error, or is worth no more than one that did."""
    return (
        # A deadline that passed is an OSError; the library is confused by a farewell that nobody asked for.
        isinstance(error, OSError | asyncpg.InternalClientError)
        or getattr(error, "severity_en", None) in {"FATAL", "PANIC"}
        or connection.is_closed()
    )


_FAREWELL = 2.0


class Pool:
    """Lends connections, at most so many at once; the one that came back last goes out first."""

    def __init__(self, connect: Callable[[], Awaitable[asyncpg.Connection]], most: int) -> None:
        self._connect = connect
        self._idle: list[asyncpg.Connection] = []
        self._free = asyncio.Semaphore(most)

    @contextlib.asynccontextmanager
    async def lend(self) -> AsyncIterator[asyncpg.Connection]:
        """A connection; one that comes back in a transaction, or after it was cancelled, isn't lent again."""
        async with self._free:
            connection = await self._take()
            try:
                yield connection
            finally:
                if connection.is_closed() or connection.is_in_transaction():
                    connection.terminate()
                else:
                    self._idle.append(connection)

    def forget(self) -> None:
        """Lend none of the idle ones again: they may be as dead as one that was found so."""
        while self._idle:
            self._idle.pop().terminate()

    async def close(self) -> None:
        """Say goodbye to the server."""
        while self._idle:
            with contextlib.suppress(*TROUBLE):  # then it is gone already
                await self._idle.pop().close(timeout=_FAREWELL)

    async def _take(self) -> asyncpg.Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed():
                return connection
        return await self._connect()
