"""A turn of an agent that keeps notes, with many lanes and turns in the database beside an empty one."""

import statistics
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, closing
from pathlib import Path

import apsw
import asyncpg

from bench.databases import Databases
from bench.servers import server
from bench.table import Line, Target, milliseconds
from segue.core.contracts.agents import Work
from segue.testing import ScriptedAgent, WhatsApp
from segue.testing.agents import Step
from tests.stories.square import Square
from tests.today import file_of_today

_TURNS_A_SESSION = 10
_TURNS = 150
"""Turns in each database, in turns."""

_NUMBERS = "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < {count})"
# People with a private chat and a session each. Both databases understand all of it.
_CROWD = """
insert into persons (id, name, since) {numbers} select 'p' || n, 'Somebody', 1 from numbers;
insert into addresses (key, kind, name, topic, since) {numbers}
select 'whatsapp/bot//c' || n || '/', 'dm', '', '', 1 from numbers;
insert into lanes (key, address, person, since) {numbers}
select 'whatsapp/bot//c' || n || '//', 'whatsapp/bot//c' || n || '/', '', 1 from numbers;
insert into sessions (id, owner, began_by, began, used, origin, head, tail, sweep) {numbers}
select 's' || n, 'p' || n, 'p' || n, 1, 1, 'whatsapp/bot//c' || n || '//', {turns}, {turns}, null from numbers;
insert into moves (id, kind, lane, session, by_person, at) {numbers}
select 'm' || n, 'renew', 'whatsapp/bot//c' || n || '//', 's' || n, 'p' || n, 1 from numbers;
insert into bindings (lane, session, since, why, by_person, move) {numbers}
select 'whatsapp/bot//c' || n || '//', 's' || n, 1, 'first', 'p' || n, 'm' || n from numbers;
insert into turns
  (session, seq, kind, lane, route, person, name, message, quotes, parts, accepted, trace, outcome, finished) {numbers},
  places (i) as (select 1 union all select i + 1 from places where i < {turns})
select 's' || n, i, 'arrival', 'whatsapp/bot//c' || n || '//', 'whatsapp/bot//c' || n || '/', 'p' || n, '',
  'm' || n || '.' || i, '', '[]', 1, '', 'answered', 1 from numbers cross join places
"""


class Notes(ScriptedAgent):
    """An agent that keeps notes, as a model does unless its host says otherwise."""

    notes = True


def _says(work: Work) -> Iterable[Step]:
    assert work.notes is not None, "it has no notebook here"
    return [f"heard in turn {work.turn}"]


def _crowd(count: int) -> list[str]:
    return _CROWD.format(numbers=_NUMBERS.format(count=count), turns=_TURNS_A_SESSION).split(";")


def _fill_sqlite(path: Path, count: int) -> None:
    with closing(apsw.Connection(file_of_today(path))) as connection:
        connection.execute("pragma synchronous = off; begin")
        for statement in _crowd(count):
            connection.execute(statement)
        connection.execute("commit")


async def _fill_postgres(dsn: str, count: int) -> None:
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "segue"})
    for statement in (*_crowd(count), "analyze"):
        await connection.execute(statement, timeout=600)
    await connection.close()


async def crowded(databases: Databases) -> AsyncIterator[Line]:
    """A turn of an agent with notes, on both databases, empty and crowded."""
    lanes = databases.scale.many
    empty, full = databases.fresh("empty"), databases.fresh("crowded")
    _fill_sqlite(full, lanes)
    yield await _line("SQLite", file_of_today(empty), str(full), lanes)
    async with server() as dsn, server() as crowd:
        for address in (dsn, crowd):
            async with Square(WhatsApp(), address).open():
                """The schema is made."""
        await _fill_postgres(crowd, lanes)
        yield await _line("PostgreSQL", dsn, crowd, lanes)


async def _line(name: str, empty: str, full: str, lanes: int) -> Line:
    """Turns in one and the other by turns, so that whatever else the machine does hits both."""
    taken: tuple[list[float], list[float]] = ([], [])
    async with AsyncExitStack() as stack:
        squares = [Square(WhatsApp(), where) for where in (empty, full)]
        for square in squares:
            square.agent = Notes(otherwise=_says)
            await stack.enter_async_context(square.open())
            await square.says("the first")
        for n in range(_TURNS):
            for square, times in zip(squares, taken, strict=True):
                began = time.perf_counter()
                await square.says(f"message {n}")
                times.append(time.perf_counter() - began)
    small, large = (statistics.median(times) for times in taken)
    what = f"a turn with notes on {name}: {lanes:,} lanes and {lanes * _TURNS_A_SESSION:,} turns"
    beside = f"an empty database {milliseconds(small)}"
    return Line("crowded", what, milliseconds(large), beside, large / small, Target("<=", 1.2))
