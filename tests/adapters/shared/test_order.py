"""Work in order: one thing after the other, what is urgent soon, and nothing after what breaks."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from segue.adapters.shared.order import Work, in_order


class Line:
    """Works that come, and what was done about them."""

    def __init__(self) -> None:
        self.coming: asyncio.Queue[Work | None] = asyncio.Queue()
        self.done: list[str] = []
        self.told: list[tuple[str, int]] = []
        """What was done after it, and how many waited behind it then."""
        self.slow, self.urgent = asyncio.Event(), asyncio.Event()

    async def works(self) -> AsyncIterator[Work]:
        while (work := await self.coming.get()) is not None:
            yield work

    def comes(self, name: str, *, held: bool = False, patience: float | None = None) -> None:
        async def do() -> None:
            if held:
                await self.slow.wait()
            self.done.append(name)
            if patience is not None:
                self.urgent.set()

        async def after(waiting: int) -> None:
            self.told.append((name, waiting))

        self.coming.put_nowait(Work(do, after, patience))


async def test_what_came_first_is_done_first() -> None:
    line = Line()
    line.comes("one", held=True)
    line.comes("two")
    line.coming.put_nowait(None)
    task = asyncio.create_task(in_order(line.works()))
    await asyncio.sleep(0.01)
    assert line.done == [], "the second overtook the first"
    line.slow.set()
    await task
    assert (line.done, line.told) == (["one", "two"], [("one", 1), ("two", 0)])


async def test_what_somebody_waits_for_waits_only_a_moment() -> None:
    line = Line()
    line.comes("slow", held=True)
    line.comes("urgent", patience=0.01)
    line.comes("last")
    task = asyncio.create_task(in_order(line.works()))
    async with asyncio.timeout(90):
        await line.urgent.wait()
    assert line.done == ["urgent"]
    assert line.told == [], "nothing counts as done that came after what isn't"
    line.slow.set()
    line.coming.put_nowait(None)
    await task
    assert line.done == ["urgent", "slow", "last"]
    assert [name for name, _ in line.told] == ["slow", "urgent", "last"]


async def test_what_breaks_ends_all_and_leaves_nothing_behind() -> None:
    line, before = Line(), asyncio.all_tasks()

    async def breaks() -> None:
        raise LookupError("the store is full")

    line.comes("one")
    line.coming.put_nowait(Work(breaks))
    line.comes("never")
    with pytest.raises(LookupError, match="the store is full"):
        await in_order(line.works())
    assert line.done == ["one"]
    assert asyncio.all_tasks() == before

    async def torn() -> AsyncIterator[Work]:
        if "never" in line.done:
            yield Work(breaks)
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await in_order(torn())
