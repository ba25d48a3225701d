"""Queues of transactions for a connection: on threads of their own, or inline in the caller."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from segue.core.contracts.database import Transaction
from segue.core.contracts.wakes import Wake

log = logging.getLogger(__name__)

_STRETCH = 0.005
_REST = 0.00005
"""Seconds that an event loop runs beside an open job, and then rests."""


class Job:
    """One transaction that somebody waits for, then its outcome."""

    __slots__ = ("args", "error", "future", "kwargs", "result", "transaction", "wake", "wakes")

    def __init__(
        self,
        transaction: Callable[..., Transaction[Any]],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        wake: Callable[[Wake], None],
    ) -> None:
        self.transaction = transaction
        self.wake = wake
        self.wakes: list[Wake] = []
        """Wake-ups that the last run of the transaction asked for."""
        self.args = args
        self.kwargs = kwargs
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.result: Any = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        """Answer whoever waits, if they weren't cancelled meanwhile, then send the wake-ups of what was committed.

        The answer comes first, and a wake-up that fails is logged: the commit is done, and its caller must hear of it.
        """
        if not self.future.done():
            if self.error is None:
                self.future.set_result(self.result)
            else:
                self.future.set_exception(self.error)
        if self.error is None:
            for wake in self.wakes:
                try:
                    self.wake(wake)
                except Exception:  # whatever it is, the other jobs of this group are answered too
                    log.exception("a wake-up couldn't be sent: others find their work by polling")


class Worker(Protocol):
    """Gives jobs their outcomes."""

    def work(self, jobs: list[Job]) -> None: ...

    def close(self) -> None: ...


class Desk(Protocol):
    """Takes jobs in, has them worked on, and answers."""

    def submit(self, job: Job) -> None: ...

    async def close(self) -> None: ...


class Inline:
    """Works at once, in the caller."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def submit(self, job: Job) -> None:
        _work(self._worker, [job])
        job.settle()

    async def close(self) -> None:
        self._worker.close()


class Threads:
    """One thread a worker; a free one takes everything that has queued, up to `at_once` jobs."""

    def __init__(self, name: str, workers: Sequence[Worker], at_once: int) -> None:
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._workers = workers
        self._at_once = at_once
        self._newest: asyncio.Future[Any] | None = None
        self._watched: asyncio.AbstractEventLoop | None = None
        # A process that forgot to close ends all the same: what was acknowledged is on the disk.
        self._threads = [threading.Thread(target=self._serve, args=(w,), name=name, daemon=True) for w in workers]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Job) -> None:
        self._queue.put(job)
        self._newest = job.future
        loop = job.future.get_loop()
        if self._watched is not loop:
            self._watched = loop
            loop.call_later(_STRETCH, self._make_way, loop)

    async def close(self) -> None:
        """Finish what was submitted before."""
        for _ in self._threads:
            self._queue.put(None)
        await asyncio.to_thread(self._end)

    def _make_way(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let the threads in: a loop that is never idle gives up the interpreter for too short a time to wake them."""
        if self._newest is None or self._newest.done():
            self._watched = None
        elif self._watched is loop:
            time.sleep(_REST)
            loop.call_later(_STRETCH, self._make_way, loop)

    def _end(self) -> None:
        for thread in self._threads:
            thread.join()
        for worker in self._workers:
            worker.close()

    def _serve(self, worker: Worker) -> None:
        job: Job | None
        while (job := self._queue.get()) is not None:
            jobs = [job]
            with contextlib.suppress(Empty):
                while len(jobs) < self._at_once and (job := self._queue.get_nowait()) is not None:
                    jobs.append(job)
            _work(worker, jobs)
            _answer(jobs)
            if job is None:
                return


def _work(worker: Worker, jobs: list[Job]) -> None:
    try:
        worker.work(jobs)
    except BaseException as error:  # noqa: BLE001 - it goes to those who wait; the thread must live on
        for job in jobs:
            job.error = error


def _answer(jobs: list[Job]) -> None:
    """Wake each event loop once, however many of its jobs are done."""
    loops: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        loops.setdefault(job.future.get_loop(), []).append(job)
    for loop, done in loops.items():
        try:
            loop.call_soon_threadsafe(_settle, done)
        except RuntimeError:
            if not loop.is_closed():  # then nobody waits any more
                raise


def _settle(jobs: list[Job]) -> None:
    for job in jobs:
        job.settle()
