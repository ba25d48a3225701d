"""A store that can't now is asked again: for work that is fenced, so that it can't come too late."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from segue.core.contracts.database import Driver, Transaction
from segue.errors import Fenced, OutcomeUnknown, StoreFull, StoreLocked, StoreReadOnly, StoreUnreachable

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger(__name__)

PASSING = (OutcomeUnknown, StoreFull, StoreLocked, StoreReadOnly, StoreUnreachable)
"""Errors that can pass by themselves, or by the host's hand."""
_SHORTEST, _LONGEST = 0.05, 1.0


def _unwatched() -> None:
    """Nobody looks for commits that weren't heard of."""


def _uncounted(_error: Exception) -> None:
    """Nobody counts what the store couldn't do."""


class Patient:
    """Runs transactions for as long as it takes; what it is waiting for can be seen."""

    def __init__(self, driver: Driver, failed: Callable[[Exception], None] = _uncounted) -> None:
        self._driver = driver
        self._failed = failed
        self._writing = ""
        self._reading = ""
        self.under_way: set[object] = set()
        """Writes whose outcome nobody here knows yet."""
        self.unheard: Callable[[], None] = _unwatched
        """Called when a commit may have happened that nobody heard of."""
        self._closed = asyncio.Event()
        self.refused = 0
        """Writes that came too late: what they were about is held by another replica."""

    @property
    def driver(self) -> Driver:
        """The store itself, for what is never retried."""
        return self._driver

    @property
    def trouble(self) -> str:
        """Reason why the store can't now; empty while it can.

        Only what is durable shows that all is well: a disk that is full or gone can still be read.
        """
        return self._writing or self._reading

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Count a write as under way, with the work that its outcome decides."""
        write = object()
        self.under_way.add(write)
        try:
            yield
        finally:
            self.under_way.discard(write)

    def close(self) -> None:
        """Wait for the store no more: from now on its errors are raised at once."""
        self._closed.set()

    async def write(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run it until the store takes it."""
        with self.writing():
            return await self._write(transaction, *args, **kwargs)

    async def _write(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        wait = _SHORTEST
        while True:
            try:
                done = await self._driver.write(transaction, *args, **kwargs)
            except Fenced:
                self.refused += 1
                raise
            except PASSING as error:
                self._writing = self._heard(error)
                if isinstance(error, OutcomeUnknown):
                    self.unheard()
                await self._pause(wait, error)
                wait = min(wait * 2, _LONGEST)
            else:
                self._writing = self._reading = ""
                return done

    async def read(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Read until the store answers."""
        wait = _SHORTEST
        while True:
            try:
                answer = await self._driver.read(transaction, *args, **kwargs)
            except PASSING as error:
                self._reading = self._heard(error)
                await self._pause(wait, error)
                wait = min(wait * 2, _LONGEST)
            else:
                self._reading = ""
                return answer

    async def _pause(self, seconds: float, error: Exception) -> None:
        """Wait until the next try; raises the error if there is none any more."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closed.wait()
        if self._closed.is_set():
            raise error

    def _heard(self, error: Exception) -> str:
        self._failed(error)
        if self.trouble != str(error):
            log.warning("database unavailable, retrying: %s", error)
        return str(error)
