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
_AGAIN = (Moved, asyncpg.SerializationError)
# Columns that say when or in which order something happened, and nothing else.
_LEFT_OUT = {
    "seq",
    "due",
    "offered",
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
        self._dump = ""
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
        tables = await self._tables()
        filled = [table for table in tables if await self._watch.fetchval(f"select 1 from {table} limit 1")]
        script = ["drop schema if exists saved cascade", "create schema saved", _AS_REPLICA]
        script += [f"create unlogged table saved.{table} as table segue.{table}" for table in filled]
        await self._watch.execute(";".join(script))
        self._restore = [_AS_REPLICA, *(f"delete from {table}" for table in tables)]
        self._restore += [f"insert into {table} overriding system value table saved.{table}" for table in filled]
        self._dump = " union all ".join(map(_rows_of, tables))

    async def restore(self) -> None:
        """Go back to what was saved."""
        await self._watch.execute(";".join(self._restore))

    async def _tables(self) -> list[str]:
        rows = await self._watch.fetch("select tablename from pg_tables where schemaname = 'segue'")
        return sorted({name for (name,) in rows} - {"version", "search"})

    async def dump(self) -> dict[str, list[str]]:
        """All rows, without what only says when or in which order they came."""
        found: dict[str, list[str]] = {}
        for table, row in sorted(map(tuple, await self._watch.fetch(self._dump))) if self._dump else ():
            found.setdefault(table, []).append(row)
        return found


def _rows_of(table: str) -> str:
    """A query for the rows of a table, each as text, without the columns that are left out."""
    out = [name.partition(" ")[0] for name in sorted(_LEFT_OUT) if name.partition(" of ")[2] in ("", table)]
    return f"select '{table}', (to_jsonb(t) - array{out})::text from {table} t"


async def as_if_one_after_the_other(tool: Interleaving, one: Make, two: Make, every: int = 1) -> None:
    """Try the pauses of either in the other's middle, each from what was saved."""
    await tool.restore()
    of_one, forth = await tool.serial(one, two)
    await tool.restore()
    of_two, turned = await tool.serial(two, one)
    back = _turned(turned)
    for pause in range(1, of_one, every):
        await tool.restore()
        _, outcome = await tool.serial(one, two, pause)
        assert outcome in (forth, back), explain(pause, outcome, forth, back)
    for pause in range(1, of_two, every):
        await tool.restore()
        _, turned = await tool.serial(two, one, pause)
        assert _turned(turned) in (forth, back), explain(pause, _turned(turned), forth, back)


def _turned(outcome: Outcome) -> Outcome:
    """The same, with the other's answer first."""
    first, second, rows = outcome
    return second, first, rows


def explain(pause: int, outcome: Outcome, forth: Outcome, back: Outcome) -> str:
    lines = [f"paused after {pause} statements:", *map(str, outcome[:2])]
    for name, serial in (("first, second", forth), ("second, first", back)):
        lines += [
            f"--- unlike {name}",
            *(f"    {a} / {b}" for a, b in zip(outcome[:2], serial[:2], strict=True) if a != b),
        ]
        for table, rows in outcome[2].items():
            lines += [f"    + {table}: {row}" for row in rows if row not in serial[2].get(table, ())]
        for table, rows in serial[2].items():
            lines += [f"    - {table}: {row}" for row in rows if row not in outcome[2].get(table, ())]
    return "\n".join(lines)
