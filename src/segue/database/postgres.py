"""PostgreSQL: many machines, each with a pool of connections, share one schema."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, ParamSpec, Self, TypeVar, cast

import asyncpg

from segue.core.contracts.database import URGENT, Transaction
from segue.core.contracts.probes import Point, Probe
from segue.core.contracts.wakes import Wake
from segue.database.postgres_hints import Channel
from segue.database.postgres_server import TROUBLE, Server
from segue.database.statements import POSTGRES, Compiled, compile_for, migrations
from segue.database.transactions import ATTEMPTS, Moved, Steps, never_settled, refuse_unsound, unheeded
from segue.errors import OutcomeUnknown, StoreUnreachable

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
        self._queries = queries
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
        await self._server.scrub()
        return True

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
            raise StoreUnreachable(f"{self._server.place} was closed. Open it again.")
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
            at = None
            try:
                await connection.execute(begin)
                probe(at := Point.WRITE_BEGUN)
                result = await self._run(connection, transaction())
                probe(at := Point.WRITE_DONE)
                await connection.execute("commit")
            except asyncio.CancelledError:
                connection.terminate()
                raise
            except BaseException as error:
                if isinstance(error, TROUBLE) and _gone(connection, error):
                    connection.terminate()
                    raise self._lost(begin, at, error) from error
                with contextlib.suppress(*TROUBLE):  # else the connection ends, which takes it back as well
                    await connection.execute("rollback")
                raise
            probe(Point.WRITE_COMMITTED)
            return result

    async def _run(self, connection: asyncpg.Connection, steps: Transaction[Any]) -> _Done:
        """The result of a transaction, and the wake-ups that it asks for."""
        rows: Any = None
        wakes: list[Wake] = []
        try:
            while True:
                statement = steps.send(rows)
                if isinstance(statement, Wake):
                    wakes.append(statement)
                    rows = []
                    continue
                arguments = statement.arguments
                refuse_unsound(arguments)
                query = self._queries[statement.name]
                rows = await connection.fetch(query.sql, *[arguments[name] for name in query.order])
        except StopIteration as done:
            return done.value, wakes

    def _lost(self, begin: str, at: Point | None, error: Exception) -> Exception:
        if begin is _WRITE and at is Point.WRITE_DONE:
            place = self._server.place
            return OutcomeUnknown(f"{place}: the connection broke during the commit. Look before you repeat it.")
        return _Broken(error)


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
