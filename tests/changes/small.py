"""A schema of two tables, its queries and a few transactions: all that a driver needs to be tested."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from segue.core.contracts.database import Row, Statement, Transaction
from segue.core.contracts.probes import Point, Probe
from segue.database.postgres import Postgres
from segue.database.sqlite import RunsIn, Sqlite
from segue.database.statements import POSTGRES, SQLITE, Dialect, _compile
from segue.database.transactions import Moved, Steps, unheeded
from segue.errors import Fenced

_QUERIES = {
    "put": "insert into words (n, word) values (:n, :word)",
    "change": "update words set word = :word where n = :n",
    "get": "select word from words where n = :n",
    "all": "select n, word from words order by n",
    "mark": "insert into marks (n) values (:n)",
    "now": "select {now}",
    "nonsense": "select n from nowhere",
}
_STEPS = [
    (
        1,
        """
        create table words (
          n {int} primary key,
          word text not null constraint not_thirteen check (length(word) <> 13)
        ) {strict};
        """,
    ),
    (
        2,
        """
        create table marks (n {int} not null references words (n)) {strict};
        create index marks_by_n on marks (n);
        select 'a statement with a row';
        insert into words (n, word) values (0, 'first');
        """,
    ),
]


def steps(dialect: Dialect, first: int = 2) -> Steps:
    return [(number, dialect.text(script)) for number, script in _STEPS[:first]]


async def open_sqlite(
    path: Path,
    *,
    probe: Probe = unheeded,
    patience: float = 5.0,
    running: RunsIn = RunsIn.THREADS,
    vfs: str | None = None,
) -> Sqlite:
    queries = {name: _compile(SQLITE, text) for name, text in _QUERIES.items()}
    return await Sqlite.open(
        path, queries=queries, steps=steps(SQLITE), probe=probe, patience=patience, running=running, vfs=vfs
    )


async def open_postgres(
    dsn: str, *, probe: Probe = unheeded, patience: float = 5.0, connections: int = 10, schema: str = "segue"
) -> Postgres:
    queries = {name: _compile(POSTGRES, text) for name, text in _QUERIES.items()}
    return await Postgres.open(
        dsn,
        queries=queries,
        steps=steps(POSTGRES),
        probe=probe,
        patience=patience,
        connections=connections,
        schema=schema,
    )


def put(n: int, word: str = "word") -> Transaction[str]:
    yield Statement("put", {"n": n, "word": word})
    ((found,),) = yield Statement("get", {"n": n})
    return str(found)


def change(n: int, word: str) -> Transaction[None]:
    yield Statement("change", {"n": n, "word": word})


def change_and_look(n: int, word: str) -> Transaction[dict[int, str]]:
    yield Statement("change", {"n": n, "word": word})
    return (yield from everything())


def everything() -> Transaction[dict[int, str]]:
    rows = yield Statement("all", {})
    return {int(n): str(word) for n, word in rows}


def ask(name: str) -> Transaction[Sequence[Row]]:
    return (yield Statement(name, {}))


def put_then_give_up(n: int) -> Transaction[None]:
    yield Statement("put", {"n": n, "word": "word"})
    raise Fenced("this")


def mark(n: int) -> Transaction[None]:
    yield Statement("mark", {"n": n})


def put_after(n: int, overtaken: list[int], times: int) -> Transaction[str]:
    """Be overtaken so many times before it gets through."""
    yield Statement("put", {"n": n, "word": "word"})
    overtaken.append(n)
    if len(overtaken) <= times:
        raise Moved
    return "through"


class Gate:
    """A probe that remembers the points, and can hold the writer at one."""

    def __init__(self) -> None:
        self.seen: list[Point] = []
        self._at: Point | None = None
        self.reached = threading.Event()
        self.opened = threading.Event()

    def hold(self, at: Point) -> None:
        """Hold the writer when it gets there next, until `opened` is set."""
        self._at = at

    def __call__(self, point: Point) -> None:
        self.seen.append(point)
        if point is self._at:
            self._at = None
            self.reached.set()
            self.opened.wait()

    async def group(self, db: Sqlite, writes: Sequence[Callable[[], Transaction[Any]]]) -> list[Any]:
        """The outcomes of writes that queued while another one ran, so that they share one commit."""
        self.hold(Point.WRITE_BEGUN)
        held = asyncio.create_task(db.write(change, 0, "held"))
        await asyncio.to_thread(self.reached.wait)
        waiting = [asyncio.create_task(db.write(write)) for write in writes]
        await asyncio.sleep(0)
        self.seen.clear()
        self.opened.set()
        await held
        return list(await asyncio.gather(*waiting, return_exceptions=True))
