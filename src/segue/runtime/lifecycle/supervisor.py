"""Supervises loops: one that fails in a way that nobody foresaw is restarted, and the others go on.

Law: only the lost lease, a closed store and a stop end all of them.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from segue.errors import Fenced, StoreClosed
from segue.runtime.lifecycle.failures import Failures

log = logging.getLogger(__name__)

_SHORTEST_WAIT, _LONGEST_WAIT = 0.1, 60.0
"""Seconds until a loop that failed is restarted, at first and at most."""
_STEADY = 5.0
"""Seconds that a restarted loop has to run until its failure is over."""
_CALLS = 4.0
"""Seconds that calls to platforms have to finish once their loop was cancelled."""
_AGAIN = 0.5
"""Seconds after which a loop is cancelled once more from then on: it may wait for a database that hangs."""


class Loop(NamedTuple):
    """A loop of a gateway: it runs until it is cancelled, or ends by itself where it has nothing to do."""

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]


class Supervisor:
    """Runs the loops of one gateway."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, loops: Sequence[Loop]) -> None:
        """Run them all until cancelled; raises `Fenced` when the lease was lost."""
        async with asyncio.TaskGroup() as group:
            for loop in loops:
                task = group.create_task(self.supervised(loop), name=loop.name)
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def supervised(self, loop: Loop) -> None:
        """Run one loop, and restart it with a growing pause whenever it fails."""
        place, wait, clock = f"The loop {loop.name}", _SHORTEST_WAIT, asyncio.get_running_loop()
        while True:
            started = clock.time()
            # A loop that runs on works again, though it says nothing of it.
            steady = clock.call_later(max(_STEADY, wait), self._failures.worked, place)
            try:
                await loop.run()
            except (Fenced, StoreClosed):
                raise
            except Exception as error:  # noqa: BLE001 -- whatever it is, the others go on and this is tried again
                self._failures.failed(place, error)
            else:
                self._failures.worked(place)
                return
            finally:
                steady.cancel()
            wait = _SHORTEST_WAIT if clock.time() - started > max(_STEADY, wait) else min(wait * 2, _LONGEST_WAIT)
            await asyncio.sleep(wait)

    async def stop(self, group: asyncio.Task[None], seconds: float) -> None:
        """Cancel the task that runs the loops until it has ended, or for so many seconds."""
        group.cancel()
        clock = asyncio.get_running_loop()
        until = clock.time() + seconds
        await asyncio.wait([group], timeout=min(seconds, _CALLS))
        while not group.done() and (left := until - clock.time()) > 0:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait([group], timeout=min(left, _AGAIN))
        if not group.done():
            names = ", ".join(sorted(task.get_name() for task in self._tasks))
            log.error("these loops didn't end in time, and are left behind: %s", names)
        elif not group.cancelled() and (error := group.exception()) and not isinstance(error, asyncio.CancelledError):
            log.warning("the gateway ended with an error", exc_info=error)
