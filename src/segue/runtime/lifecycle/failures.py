"""Failures that nobody foresaw: of a loop, of an item of a sweep, of an adapter's call.

Law: none of them ends the gateway, and none keeps other work from being done. Each is logged, counted, and shown by
health until it is over.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from segue.core.contracts.database import Clock
from segue.errors import Fenced, SegueError, SendError, SendNever, StoreClosed

T = TypeVar("T")
log = logging.getLogger(__name__)

_SHORTEST_WAIT, _LONGEST_WAIT = 1.0, 300.0
"""Seconds until an item that failed is tried again, at first and at most."""
_SHOWN = 2 * _LONGEST_WAIT
"""Seconds for which a failure is shown that doesn't come back: what failed may be gone."""


def _uncounted(_place: str) -> None:
    """Nobody counts failures."""


@dataclass
class _Failure:
    """What fails now, how often it did in a row, and when it is tried again."""

    why: str
    times: int = 0
    last: float = 0.0

    @property
    def due(self) -> float:
        return self.last + float(min(_LONGEST_WAIT, _SHORTEST_WAIT * 2 ** min(self.times - 1, 20)))


class Failures:
    """What fails now in a gateway."""

    def __init__(self, counted: Callable[[str], None] = _uncounted, ticks: Clock = time.monotonic) -> None:
        self._counted = counted
        self._ticks = ticks
        self._found: dict[tuple[str, str], _Failure] = {}

    def failed(self, place: str, error: Exception, item: str = "") -> None:
        """Something failed in a way that nobody foresaw; its traceback is logged when it begins to."""
        # Only what Segue worded itself, or the system, is sure to carry nobody's words.
        why = str(error) if isinstance(error, SegueError | OSError) else type(error).__name__
        failure = self._found.get((place, item))
        if failure is None or failure.why != why:
            log.error("%s failed in a way that nobody foresaw", place, exc_info=error, extra={"item": item or "-"})
            times = failure.times if failure is not None else 0
            failure = self._found[place, item] = _Failure(why, times)
        failure.times += 1
        failure.last = self._ticks()
        self._counted(place)

    def worked(self, place: str, item: str = "") -> None:
        """It works: a failure of it is over."""
        if self._found and self._found.pop((place, item), None) is not None:
            log.info("%s works again", place, extra={"item": item or "-"})

    def is_postponed(self, place: str, item: str) -> bool:
        """Whether an item failed and isn't to be tried again yet."""
        failure = self._found.get((place, item))
        return failure is not None and self._ticks() < failure.due

    def postponed(self, place: str) -> int:
        """Items of a place that failed and may still be there."""
        self._prune()
        return sum(1 for found, item in self._found if found == place and item)

    @property
    def problems(self) -> list[str]:
        """What fails now, in words."""
        self._prune()
        places: dict[str, list[_Failure]] = {}
        for (place, _), failure in self._found.items():
            places.setdefault(place, []).append(failure)
        return [_in_words(place, failures) for place, failures in places.items()]

    @contextmanager
    def adapter_call(self, platform: str, account: str, doing: str) -> Iterator[None]:
        """Turn an error that an adapter doesn't name into `SendNever`: the adapter isn't ours."""
        place = f"{platform}.{account}: {doing}"
        try:
            yield
        except (SendError, TimeoutError, Fenced):
            self.worked(place)
            raise
        except Exception as error:
            self.failed(place, error)
            raise SendNever("its adapter failed, as the log says") from error
        self.worked(place)

    def _prune(self) -> None:
        over = self._ticks() - _SHOWN
        if any(failure.last < over for failure in self._found.values()):
            self._found = {key: failure for key, failure in self._found.items() if failure.last >= over}


def _in_words(place: str, failures: Sequence[_Failure]) -> str:
    count, why = len(failures), failures[-1].why.rstrip(".")
    items = "fails" if count == 1 else f"fails for {count} items"
    return f"{place} {items} and is retried: {why}. See the log."


class ItemGuard:
    """One kind of work on many items: one that fails is postponed, and the others are done."""

    def __init__(self, name: str, failures: Failures) -> None:
        self._name = name
        self._failures = failures

    @property
    def postponed(self) -> int:
        """Items that failed and may still be there: a batch that is read has to be so much larger."""
        return self._failures.postponed(self._name)

    async def for_each_item(
        self, items: Iterable[T], do: Callable[[T], Awaitable[object]], id_of: Callable[[T], str]
    ) -> int:
        """Do it for each item that isn't postponed; returns for how many it was done."""
        done = 0
        for item in items:
            with self.guarding(id_of(item)) as is_due:
                if is_due:
                    await do(item)
                    done += 1
        return done

    async def exhaust(
        self,
        read: Callable[[int], Awaitable[Sequence[T]]],
        batch: int,
        do: Callable[[T], Awaitable[object]],
        id_of: Callable[[T], str],
    ) -> None:
        """Do it batch after batch, until nothing is left but what is postponed."""
        while found := await read(batch + self.postponed):
            if not await self.for_each_item(found, do, id_of):
                return

    @contextmanager
    def guarding(self, item: str) -> Iterator[bool]:
        """Guard what is done about one item; gives whether it is due."""
        if self._failures.is_postponed(self._name, item):
            yield False
            return
        try:
            yield True
        except (Fenced, StoreClosed):
            raise
        except Exception as error:  # noqa: BLE001 -- whatever it is, the other items have their turn
            self._failures.failed(self._name, error, item)
        else:
            self._failures.worked(self._name, item)
