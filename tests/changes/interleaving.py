"""Runs two transactions on PostgreSQL statement by statement, one pausing in the middle of the other.

Whatever the pause, the outcome must be as if one had come entirely after the other.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Generator
from typing import Any

import asyncpg

from segue.core.contracts.database import Row, Statement, Transaction
from segue.core.contracts.wakes import Wake
from segue.database.statements import POSTGRES, compile_for
from segue.database.transactions import Moved, one_by_one
from segue.errors import SegueError

Make = Callable[[], Transaction[Any]]
Outcome = tuple[str, str, dict[str, list[str]]]
"""What each of the two answered, and all that the database holds afterwards."""

# No trigger and no reference stands in the way of a replica.
_AS_REPLICA = "set session_replication_role = replica"
_QUERIES = compile_for(POSTGRES)
_AGAIN = (Moved, asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
# Columns that say when or in which order something happened, and nothing else.
_LEFT_OUT = {
    "seq",
    "due",
    "expires",
    "id of bindings",
    "id of titles",
    "id of tips",
    "id of seen",
    "id of deliveries",
    "id of audit",
}


class Half:
    """One of the two: a transaction on a connection of its own."""

    def __init__(self, connection: asyncpg.Connection, make: Make) -> None:
        self._connection = connection
        self._make = make
        self._steps: Generator[Statement | Wake, list[Row], Any] | None = None
        self._rows: Any = None
        self.answer = ""

    async def go(self, statements: int | None) -> int:
        """Run so many statements, or all and the commit; returns how many there were."""
        ran = 0
        while not self.answer and (statements is None or ran < statements):
            try:
                await self._next()
            except _AGAIN:
                await self._connection.execute("rollback")
                self._steps = None
            ran += 1
        return ran

    async def _next(self) -> None:
        if self._steps is None:
            await self._connection.execute("begin isolation level read committed")
            self._steps, self._rows = one_by_one(self._make()), None
        try:
            statement = self._steps.send(self._rows)
        except StopIteration as done:
            await self._connection.execute("commit")
            self.answer = re.sub(r"id='\d+'", "id=", repr(done.value))
        except SegueError as error:
            await self._connection.execute("rollback")
            self.answer = repr(error)
        else:
            if isinstance(statement, Wake):
                self._rows = []
                return
            query = _QUERIES[statement.name]
            try:
                arguments = [statement.arguments[name] for name in query.order]
                self._rows = await self._connection.fetch(query.sql, *arguments)
            except asyncpg.IntegrityConstraintViolationError as error:
                await self._connection.execute("rollback")
                self.answer = f"conflict: {error.constraint_name}"


class Interleaving:
    """Two connections for the halves and one that watches."""

    def __init__(self, first: asyncpg.Connection, second: asyncpg.Connection, watch: asyncpg.Connection) -> None:
        self._connections = first, second
        self._watch = watch
        self._restore: list[str] = []
        self._waited = False

    @classmethod
    async def open(cls, dsn: str) -> Interleaving:
        settings = {"search_path": "segue", "deadlock_timeout": "20ms"}
        return cls(*[await asyncpg.connect(dsn, server_settings=settings) for _ in range(3)])

    async def close(self) -> None:
        for connection in (*self._connections, self._watch):
            await connection.close()

    async def serial(self, first: Make, second: Make, pause: int | None = None) -> tuple[int, Outcome]:
        """Run the first up to the pause, then the second, then the rest of the first; without a pause all of it."""
        one, two = (Half(c, make) for c, make in zip(self._connections, (first, second), strict=True))
        ran = await one.go(pause)
        task = asyncio.create_task(two.go(None))
        while not task.done() and not await self._waits():
            await asyncio.wait({task}, timeout=0.001)
        self._waited = not task.done()
        await one.go(None)
        await task
        return ran, (one.answer, two.answer, await self.dump())

    def second_waited(self) -> bool:
        """Whether the second of the last two had to wait for the first."""
        return self._waited

    async def _waits(self) -> bool:
        pid = self._connections[1].get_server_pid()
        return bool(
            await self._watch.fetchval("select exists (select 1 from pg_locks where pid = $1 and not granted)", pid)
        )

    async def save(self) -> None:
        """Remember all rows, so that every try begins alike."""
        script = ["drop schema if exists saved cascade", "create schema saved", _AS_REPLICA]
        script += [f"create unlogged table saved.{table} as table segue.{table}" for table in await self._tables()]
        await self._watch.execute(";".join(script))
        filled = [
            table for table in await self._tables() if await self._watch.fetchval(f"select 1 from {table} limit 1")
        ]
        self._restore = [_AS_REPLICA, *(f"delete from {table}" for table in await self._tables())]
        self._restore += [f"insert into {table} overriding system value table saved.{table}" for table in filled]

    async def restore(self) -> None:
        """Go back to what was saved."""
        await self._watch.execute(";".join(self._restore))

    async def _tables(self) -> list[str]:
        rows = await self._watch.fetch("select tablename from pg_tables where schemaname = 'segue'")
        return sorted({name for (name,) in rows} - {"version", "search"})

    async def dump(self) -> dict[str, list[str]]:
        """All rows, without what only says when or in which order they came."""
        found = {}
        for table in await self._tables():
            rows = await self._watch.fetch(f"select * from {table}")
            found[table] = sorted(
                repr([(name, value) for name, value in row.items() if not {name, f"{name} of {table}"} & _LEFT_OUT])
                for row in rows
            )
        return found


async def as_if_one_after_the_other(tool: Interleaving, first: Make, second: Make, every: int = 1) -> None:
    """Try the pauses, each from what was saved."""
    await tool.restore()
    statements, forth = await tool.serial(first, second)
    await tool.restore()
    _, (answer, other, rows) = await tool.serial(second, first)
    back = (other, answer, rows)
    for pause in range(1, statements, every):
        await tool.restore()
        _, outcome = await tool.serial(first, second, pause)
        assert outcome in (forth, back), explain(pause, outcome, forth, back)


def explain(pause: int, outcome: Outcome, forth: Outcome, back: Outcome) -> str:
    lines = [f"paused after {pause} statements:", *map(str, outcome[:2])]
    for name, serial in (("first, second", forth), ("second, first", back)):
        lines += [
            f"--- unlike {name}",
            *(f"    {a} / {b}" for a, b in zip(outcome[:2], serial[:2], strict=True) if a != b),
        ]
        for table, rows in outcome[2].items():
            lines += [f"    + {table}: {row}" for row in rows if row not in serial[2][table]]
            lines += [f"    - {table}: {row}" for row in serial[2][table] if row not in rows]
    return "\n".join(lines)
