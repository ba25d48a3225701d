"""Work in the order in which it came, for a connection that is read ahead of what is done."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

_AHEAD = 500
"""Works that are begun or wait, after which nothing more is read."""


class Work(NamedTuple):
    """One thing that came, and what there is to do about it."""

    do: Callable[[], Awaitable[None]]
    after: Callable[[int], Awaitable[None]] | None = None
    """Done once it and all before it are, in the same order; it is told how many wait behind it."""
    patience: float | None = None
    """Seconds that it waits for what came before it, if somebody waits for it; None: for as long as that takes."""


async def in_order(works: AsyncIterator[Work]) -> None:
    """Do works as they come, each after those before it, and end when they do; raises whatever breaks first."""
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
