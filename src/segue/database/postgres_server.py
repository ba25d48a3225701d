"""The PostgreSQL server: how it is reached, how its schema is made and brought up to date, and what its errors mean."""

import asyncio
import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import asyncpg

from segue.core.contracts.probes import Point, Probe
from segue.database.shapes import difference, shape_of, unlike
from segue.database.statements import POSTGRES, SQLITE, migrations
from segue.database.transactions import Steps, pending, too_long
from segue.errors import (
    Invalid,
    StoreConflict,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    StoreSilent,
    StoreUnreachable,
)

TROUBLE = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
"""Every kind of error that a call to the server can raise."""

# A server may have been told not to wait for its disk; we acknowledge what is committed, so we do.
_DURABLE = "select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'"
_WORDY = (
    *("entries", "turns", "journal", "partials", "deliveries", "letters", "search", "titles", "contexts"),
    *("schedules", "persons", "addresses", "sessions", "notes", "questions", "agent_states", "file_chunks"),
)
"""The tables that hold what people said."""
_OF_WORDS = ("search_tokens", "titles_exact", "sessions_label")
"""The indexes that do."""
_READ_FROM_BEFORE = """select count(*) from pg_stat_activity
where backend_xmin is not null and age(backend_xmin) >= age($1::xid) and pid <> pg_backend_pid()
and (datname is null or datname = current_database())"""
"""How many read the database as it was before a transaction; standbys that tell what they read are among them."""
# The view of the standard, information_schema.columns, says the same and takes three times as long to plan.
_COLUMNS = """select c.relname, a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
where c.relnamespace = to_regnamespace($1) and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped"""
_SCRUBBING = 0x5C12
"""The first half of the lock of whoever scrubs."""
_LOOKS, _LOOK = 50, 0.02
"""Looks at that, and seconds between two."""
_SILENT = "it doesn't answer. See whether it runs and whether the address is right."
_MEANINGS: tuple[tuple[type[Exception], type[StoreError], str], ...] = (
    (asyncpg.LockNotAvailableError, StoreLocked, "somebody else held it too long. Try again."),
    (asyncpg.QueryCanceledError, StoreLocked, "it took longer than the server allows. Try again."),
    (asyncpg.DiskFullError, StoreFull, "its disk is full; nothing of the change was kept. Make room and try again."),
    (asyncpg.ReadOnlySQLTransactionError, StoreReadOnly, "it can't be written to. Name the primary server."),
    (asyncpg.InsufficientPrivilegeError, StoreReadOnly, "our role may not. Let it own the schema, or create it."),
    (asyncpg.DataCorruptedError, StoreCorrupt, "it is damaged. Restore a backup."),
    (asyncpg.IndexCorruptedError, StoreCorrupt, "an index is damaged. Run REINDEX, or restore a backup."),
    (asyncpg.InvalidAuthorizationSpecificationError, StoreUnreachable, "it refuses this user or password. Check both."),
    (asyncpg.InvalidCatalogNameError, StoreUnreachable, "there is no such database. Create it first."),
    (asyncpg.TooManyConnectionsError, StoreUnreachable, "it has no connection left. Raise max_connections."),
    (asyncpg.CannotConnectNowError, StoreSilent, "it is starting or stopping. Try again in a moment."),
    (asyncpg.PostgresConnectionError, StoreSilent, _SILENT),
    (asyncpg.OperatorInterventionError, StoreUnreachable, _SILENT),
    (asyncpg.InvalidTransactionStateError, StoreUnreachable, "it ended a transaction that stood still. Try again."),
    (asyncpg.InsufficientResourcesError, StoreUnreachable, "it has run out of memory or of something else."),
    (asyncpg.PostgresSystemError, StoreUnreachable, "its disk doesn't read or write. See whether that is sound."),
    (asyncpg.InterfaceError, StoreUnreachable, _SILENT),
    (asyncpg.InternalClientError, StoreUnreachable, _SILENT),
    (OSError, StoreSilent, _SILENT),
)


class Server:
    """The address of one schema."""

    def __init__(self, dsn: str, schema: str, patience: float) -> None:
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
            raise Invalid("schema", f"{schema!r} can't name one", "Use small letters, digits and _, at most 63.")
        self.schema = schema
        self.place = _place(dsn)
        self._patience = patience
        self._wait = str(int(patience * 1000))
        self._settings: dict[str, Any] = {
            "dsn": dsn,
            "timeout": 10,
            "statement_cache_size": 1000,
            "max_cached_statement_lifetime": 0,
        }
        self._session = {
            "application_name": "segue",
            "search_path": schema,
            "jit": "off",
            # A process that froze in a transaction, or whose machine is gone, must not keep its locks for ever.
            "idle_in_transaction_session_timeout": self._wait,
            "tcp_keepalives_idle": "10",
            "tcp_keepalives_interval": "5",
            "tcp_keepalives_count": "3",
        }

    async def connect(self) -> asyncpg.Connection:
        """A connection that waits for locks as long as it takes."""
        return await self._connect(self._session)

    async def connect_for_transactions(self) -> asyncpg.Connection:
        """A connection whose commits are durable and which waits for locks with patience."""
        # What isn't answered by the deadline won't be: the server may be out of reach without saying so.
        connection = await self._connect(
            self._session | {"lock_timeout": self._wait}, command_timeout=3 * self._patience
        )
        with self.made_ready(connection):
            await connection.execute(_DURABLE)
        return connection

    @contextmanager
    def made_ready(self, connection: asyncpg.Connection) -> Iterator[None]:
        """While a new connection is made ready: if that can't be, or nobody waits for it any more, none is left."""
        try:
            yield
        except asyncio.CancelledError:
            connection.terminate()
            raise
        except TROUBLE as error:
            connection.terminate()
            raise self.named(error) from error

    async def _connect(self, session: dict[str, str], **settings: Any) -> asyncpg.Connection:
        try:
            return await asyncpg.connect(**self._settings, **settings, server_settings=session)
        except (ValueError, OverflowError):
            raise _bad_address() from None  # its text quotes the address
        except TROUBLE as error:
            raise self.named(error) from error

    def named(self, error: Exception) -> Exception:
        """Segue's error for one of PostgreSQL's; one that only a mistake in our SQL can cause stays as it is."""
        if isinstance(error, asyncpg.IntegrityConstraintViolationError):
            # Its own text quotes what people wrote.
            rule = f"{error.constraint_name or error.column_name} of {error.table_name}"
            return StoreConflict(f"{self.place}: a rule of the schema refused the change ({rule}).")
        if isinstance(error, asyncpg.ProgramLimitExceededError):
            return too_long()
        for kind, ours, text in _MEANINGS:
            if isinstance(error, kind):
                return ours(f"{self.place}: {text} (PostgreSQL says: {error})")
        return error

    async def migrate(self, steps: Steps, probe: Probe) -> None:
        """Bring the schema up to date; of many processes that try at once, each step is done by one."""
        connection = await self.connect()
        try:
            if await connection.fetchval("show server_encoding") != "UTF8":
                raise StoreUnreachable(f"{self.place} can't keep every language. Create it with encoding UTF8.")
            version = await self.version(connection)
            if version and steps == migrations(POSTGRES) and (lacking := await self.lacking(connection, version)):
                raise StoreCorrupt(f"{self.place}: {unlike(version, lacking)}")
            while pending(steps, await self.version(connection), self.place):
                async with connection.transaction(isolation="read_committed"):
                    await connection.execute("select pg_advisory_xact_lock($1)", self._key())
                    todo = pending(steps, await self.version(connection), self.place)
                    if todo:
                        await self._step(connection, *todo[0], probe)
                probe(Point.MIGRATION_COMMITTED)
        except TROUBLE as error:
            raise self.named(error) from error
        finally:
            await connection.close()

    async def _step(self, connection: asyncpg.Connection, number: int, script: str, probe: Probe) -> None:
        probe(Point.MIGRATION_BEGUN)
        if await connection.fetchval("select to_regnamespace($1) is null", self.schema):
            await connection.execute(f"create schema {self.schema}")
        await connection.execute("create table if not exists version (number bigint primary key)")
        await connection.execute(script)
        await connection.execute("insert into version values ($1)", number)
        probe(Point.MIGRATION_DONE)

    async def lacking(self, connection: asyncpg.Connection, version: int) -> str:
        """The first thing that the migrations make and the schema lacks; empty if nothing."""
        columns = await connection.fetch(_COLUMNS, self.schema)
        return difference(version, shape_of((row[0], row[1]) for row in columns), migrations(SQLITE))

    async def scrub(self) -> bool:
        """Vacuum the tables that held words, and build the indexes of words anew; returns whether that was done.

        An index that maps words to rows keeps a word when its last row is gone, and pages of any index keep the bytes
        of what was vacuumed until they are used again. As long as anybody reads the database as it was before, the
        server keeps the rows for them. Of several processes one does it: two that build an index anew wait for each
        other.
        """
        connection = await self.connect()
        try:
            # The lock goes with the connection.
            alone = await connection.fetchval("select pg_try_advisory_lock($1, $2)", _SCRUBBING, self._key() % 2**31)
            clear = alone and await _nobody_reads_from_before(connection)
            if clear:
                await connection.execute(f"vacuum (index_cleanup on) {', '.join(_WORDY)}")
                for index in _OF_WORDS:
                    await connection.execute(f"reindex index concurrently {index}")
        except TROUBLE as error:
            raise self.named(error) from error
        finally:
            await connection.close()
        return bool(clear)

    async def version(self, connection: asyncpg.Connection) -> int:
        """The version of our schema, 0 if there is none yet; one that another program filled is refused."""
        tables = await connection.fetch(
            "select relname from pg_class where relnamespace = to_regnamespace($1) and relkind in ('r', 'p')",
            self.schema,
        )
        if not tables:
            return 0
        if all(name != "version" for (name,) in tables):
            raise StoreCorrupt(f"{self.place}: schema {self.schema} is another program's. Name another for Segue's.")
        return cast(int, await connection.fetchval("select coalesce(max(number), 0) from version"))

    def _key(self) -> int:
        """The number of the lock that those who migrate this schema take."""
        return int.from_bytes(hashlib.sha256(f"segue {self.schema}".encode()).digest()[:8], signed=True)


async def _nobody_reads_from_before(connection: asyncpg.Connection) -> bool:
    """Whether whoever reads the database as it is now is done, perhaps after a moment."""
    now = await connection.fetchval("select cast(pg_current_xact_id() as xid)")
    for _ in range(_LOOKS):
        if not await connection.fetchval(_READ_FROM_BEFORE, now):
            return True
        await asyncio.sleep(_LOOK)
    return False


def _place(dsn: str) -> str:
    """The address without what is secret in it."""
    try:
        parts = urlsplit(dsn)
    except ValueError:
        raise _bad_address() from None
    who, at, host = parts.netloc.rpartition("@")
    # A password that wasn't escaped spills over into what follows it.
    spilled = "@" in who + parts.path + parts.fragment or ("@" in parts.query and ":" in host and not at)
    if parts.scheme not in {"postgres", "postgresql"} or spilled:
        raise _bad_address()
    host = host or parse_qs(parts.query).get("host", ["localhost"])[-1]
    return f"PostgreSQL at {host}{parts.path}"


def _bad_address() -> Invalid:
    return Invalid(
        "database",
        "this isn't an address of PostgreSQL",
        "Write postgresql://USER@HOST/NAME, and what is special in a password as %XX.",
    )
