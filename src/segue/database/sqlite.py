"""SQLite: one file, one thread that writes, and in each commit everything that queued during the last one.

Nobody is answered before the commit that holds their change. One that fails harms no neighbour: if it had changed
something, all are taken back and run again, each in a savepoint. If the whole group is lost (no room, an I/O error),
each of its changes runs again, alone.
"""

import asyncio
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, ParamSpec, Self, TypeVar, cast

import apsw

from segue.core.contracts.database import Clock, Statement, Together, Transaction
from segue.core.contracts.probes import Point, Probe
from segue.core.contracts.wakes import Wake
from segue.database.hints import Hints
from segue.database.sqlite_file import SqliteFile
from segue.database.sqlite_hints import Sockets
from segue.database.sqlite_log import LogFolder
from segue.database.sqlite_threads import Desk, Inline, Job, Threads
from segue.database.statements import SQLITE, Compiled, compile_for, migrations
from segue.database.transactions import ATTEMPTS, Moved, Steps, never_settled, refuse_unsound, unheeded, went_on
from segue.errors import OutcomeUnknown, StoreClosed

P = ParamSpec("P")
T = TypeVar("T")

_GROUP = 1000
_READERS = 3
# What a job does wrong by itself; every other error of SQLite is the database's, and the whole group is in doubt.
_OWN_FAULT = (apsw.BindingsError, apsw.ConstraintError, apsw.MismatchError, apsw.SQLError, apsw.TooBigError)


class RunsIn(Enum):
    """The place where transactions run."""

    THREADS = "threads"
    """One thread writes and each reader has its own, so that a disk that syncs stops nothing else."""
    INLINE = "inline"
    """In the caller: everything happens in one repeatable order, for the simulator."""


class Sqlite:
    """Runs transactions against one SQLite file."""

    copies = ("copies and backups of the database file",)

    def __init__(
        self, file: SqliteFile, writer: Desk, readers: Desk, hints: Hints, folder: LogFolder | None = None
    ) -> None:
        self._file = file
        self._folder = folder
        self._writer = writer
        self._readers = readers
        self._hints = hints
        self._closed = False

    @classmethod
    async def open(
        cls,
        path: Path | str,
        *,
        queries: Mapping[str, Compiled] | None = None,
        steps: Steps | None = None,
        clock: Clock | None = None,
        probe: Probe = unheeded,
        patience: float = 5.0,
        running: RunsIn = RunsIn.THREADS,
        vfs: str | None = None,
    ) -> Self:
        """Open the file, made or brought up to date if need be; for other processes it waits `patience` seconds."""
        file = SqliteFile(Path(path), clock, patience, vfs)
        named = compile_for(SQLITE) if queries is None else queries
        todo = migrations(SQLITE) if steps is None else steps

        def connect() -> tuple[apsw.Connection, _Worker, list[_Worker]]:
            opened = file.writer(todo, probe)
            writer = _Worker(file, opened, named, "begin immediate", probe)
            return opened, writer, [_Worker(file, file.reader(), named, "begin", unheeded) for _ in range(_READERS)]

        match running:
            case RunsIn.INLINE:
                _, writer, reading = connect()
                return cls(file, Inline(writer), Inline(reading[0]), Hints())
            case RunsIn.THREADS:
                opened, writer, reading = await asyncio.to_thread(connect)
                folder = await asyncio.to_thread(file.folder)
                opened.set_wal_hook(folder.grown)
                desks = Threads("segue writer", [writer], _GROUP), Threads("segue reader", reading, 1)
                return cls(file, *desks, Sockets.open(file.path), folder)

    async def write(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run it once; when this returns, what it did is durable."""
        return cast(T, await self._submit(self._writer, Job(transaction, args, kwargs, self._hints.wake)))

    async def read(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one that only reads, on a snapshot, beside the writers."""
        return cast(T, await self._submit(self._readers, Job(transaction, args, kwargs, self._hints.wake)))

    def _submit(self, desk: Desk, job: Job) -> asyncio.Future[Any]:
        if self._closed:
            raise StoreClosed(f"{self._file.path} was closed. Open it again.")
        desk.submit(job)
        return job.future

    async def scrub(self) -> bool:
        """Let nothing be left of what was overwritten: neither in the log nor in unused parts of the file."""
        return await asyncio.to_thread(self._file.scrub)

    async def damage(self) -> str:
        """Look through the file, a table at a time; inline there is nothing beside which to look."""
        return "" if isinstance(self._writer, Inline) else await asyncio.to_thread(self._file.damage)

    async def hint(self, topic: str) -> None:
        """Wake every process that shares this file."""
        refuse_unsound({"topic": topic})
        self._hints.send(topic)

    def listen(self, heard: Callable[[str], None]) -> Callable[[], None]:
        """Call back, on the event loop, for each hint; returns how to stop."""
        return self._hints.listen(heard)

    async def close(self) -> None:
        """Finish what was accepted and let go of the file."""
        if not self._closed:
            self._closed = True
            await self._readers.close()
            if self._folder is not None:
                await asyncio.to_thread(self._folder.close)
            await self._writer.close()
            await self._hints.close()  # last: who was just answered may want to tell


class _Worker:
    """Runs jobs on one connection."""

    def __init__(
        self, file: SqliteFile, connection: apsw.Connection, queries: Mapping[str, Compiled], begin: str, probe: Probe
    ) -> None:
        self._file = file
        self._connection = connection
        self._execute = connection.cursor().execute
        self._queries = {name: _prepared(query) for name, query in queries.items()}
        self._begin = begin
        self._writes = begin == "begin immediate"
        self._probe = probe

    def close(self) -> None:
        self._connection.close()

    def work(self, jobs: list[Job]) -> None:
        """Give every job its outcome."""
        if self._writes and (gone := self._file.gone()):
            for job in jobs:
                job.error = gone
            return
        self._commit(jobs)
        for job in jobs:
            attempts = 1
            while isinstance(job.error, Moved):
                if attempts == ATTEMPTS:
                    job.error = never_settled(str(self._file.path))
                else:
                    attempts += 1
                    self._commit([job])

    def _commit(self, jobs: list[Job]) -> None:
        """Run the jobs in one transaction, or each in its own if that one is lost."""
        at = None
        try:
            self._execute(self._begin)
            self._probe(at := Point.WRITE_BEGUN)
            if not self._attempt_all(jobs) and len(jobs) > 1:
                self._execute("rollback")
                self._execute(self._begin)
                for job in jobs:
                    self._attempt_beside_others(job)
            if any(job.error is None for job in jobs):
                self._probe(at := Point.WRITE_DONE)
                self._execute("commit")
                self._probe(Point.WRITE_COMMITTED)
        except apsw.Error as error:
            self._leave()
            # Who has waited for a lock in vain has waited long enough: alone they would wait one after the other.
            if len(jobs) > 1 and (at or not isinstance(error, apsw.BusyError)):
                for job in jobs:
                    self._commit([job])
            else:
                for job in jobs:
                    job.error = self._lost(error, at)
        finally:
            self._leave()

    def _attempt_all(self, jobs: list[Job]) -> bool:
        """Run the jobs; False once one has failed that had changed something before.

        That is rare, so they run without savepoints: under one SQLite copies every page before it changes it.
        """
        changes = self._connection.total_changes
        for job in jobs:
            before = changes()
            self._attempt(job)
            if job.error is not None and changes() != before:
                return False
        return True

    def _attempt(self, job: Job) -> None:
        job.error = None
        try:
            job.result = self._run(job)
        except BaseException as error:  # it belongs to whoever waits for the job
            job.error = error
            if isinstance(error, apsw.Error):
                if not isinstance(error, _OWN_FAULT) or not self._connection.in_transaction:
                    raise
                job.error = self._file.named(error)

    def _attempt_beside_others(self, job: Job) -> None:
        self._execute("savepoint job")
        self._attempt(job)
        if job.error is not None:
            self._execute("rollback to job")
        self._execute("release job")

    def _run(self, job: Job) -> Any:
        steps = job.transaction(*job.args, **job.kwargs)
        rows: Any = None
        job.wakes, over = [], False
        try:
            while True:
                step = steps.send(rows)
                if isinstance(step, Wake):
                    job.wakes.append(step)
                    rows = []
                elif over:
                    raise went_on()
                elif isinstance(step, Together):
                    rows, over = [self._rows(statement) for statement in step.statements], step.last
                else:
                    rows = self._rows(step)
        except StopIteration as done:
            return done.value

    def _rows(self, statement: Statement) -> Any:
        refuse_unsound(statement.arguments)
        sql, in_order, counted = self._queries[statement.name]
        if not sql:  # what the other database waits for happens by itself here
            return [(1,)]
        found = self._execute(sql, in_order(statement.arguments))
        rows = [(1,)] * self._connection.changes() if counted else found.fetchall()
        if statement.must and not rows:
            raise Moved
        return rows

    def _leave(self) -> None:
        if self._connection.in_transaction:
            self._execute("rollback")

    def _lost(self, error: apsw.Error, at: Point | None) -> Exception:
        if at is Point.WRITE_DONE and isinstance(error, apsw.IOError):
            # The log may hold all of it although the disk never said so; after a crash SQLite would believe the log.
            return OutcomeUnknown(f"{self._file.path}: the disk failed during the commit. Look before you repeat it.")
        return self._file.named(error)


@cache
def _prepared(query: Compiled) -> tuple[str, Callable[[Mapping[str, Any]], tuple[Any, ...]], bool]:
    """A query's text, what brings its arguments into order, and whether it counts; the same for every connection."""
    return query.sql, _in_order(query.order), query.counted


def _in_order(names: tuple[str, ...]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """Takes arguments in the order in which SQLite numbers them, so that it needn't look for each by its name."""
    match names:
        case ():
            return lambda _: ()
        case (name,):
            return lambda arguments: (arguments[name],)
        case _:
            return itemgetter(*names)
