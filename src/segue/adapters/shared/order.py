"""Runs tasks in the order of their arrival, while the connection reads ahead."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

_AHEAD = 500
"""The most tasks that run or wait before reading pauses."""


class Work(NamedTuple):
    """A task for one update, and a follow-up."""

    do: Callable[[], Awaitable[None]]
    after: Callable[[int], Awaitable[None]] | None = None
    """The follow-up, called in order once this task and all earlier ones are done.

    Its argument is the number of tasks that wait behind it.
    """
    patience: float | None = None
    """The longest wait for earlier tasks, in seconds; None waits until they are done."""


async def in_order(works: AsyncIterator[Work]) -> None:
    """Run tasks in order until there are no more; raise the first error."""
    begun: asyncio.Queue[tuple[Work, asyncio.Task[None]]] = asyncio.Queue(_AHEAD)
    tasks: set[asyncio.Task[None]] = set()

    async def read() -> None:
        before: asyncio.Task[None] | None = None
        async for work in works:
            before = asyncio.create_task(_in_turn(work, before))
            tasks.add(before)
            await begun.put((work, before))
        await begun.join()

    async def follow() -> None:
        while True:
            work, task = await begun.get()
            await task
            tasks.discard(task)
            if work.after is not None:
                await work.after(begun.qsize())
            begun.task_done()

    both = [asyncio.create_task(read()), asyncio.create_task(follow())]
    try:
        done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (*both, *tasks):
            task.cancel()
        await asyncio.gather(*both, *tasks, return_exceptions=True)
    for task in done:
        task.result()


async def _in_turn(work: Work, before: asyncio.Task[None] | None) -> None:
    if before is not None:
        await asyncio.wait([before], timeout=work.patience)
        if before.done():
            before.result()
    await work.do()
    if before is not None:
        await before
