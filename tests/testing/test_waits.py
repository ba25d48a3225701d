"""Waiting: woken by each change, and loud when nothing comes."""

import asyncio

import pytest

from segue.testing import waits
from segue.testing.waits import Changes, NeverCame


async def test_who_waits_sees_the_change() -> None:
    changes, shelf = Changes(), list[str]()
    waiting = [
        asyncio.create_task(changes.until(lambda: shelf[0] if shelf else None, lambda: "an empty shelf"))
        for _ in range(2)
    ]
    await asyncio.sleep(0)
    changes.tell()
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting), "nothing to see yet"
    shelf.append("book")
    changes.tell()
    assert await asyncio.gather(*waiting) == ["book", "book"]


async def test_what_is_so_already_is_not_waited_for() -> None:
    assert await Changes().until(lambda: 7, lambda: "nothing") == 7


async def test_what_never_comes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "PATIENCE", 0.01)
    with pytest.raises(NeverCame, match="an empty shelf"):
        await Changes().until(lambda: None, lambda: "an empty shelf")


async def test_who_gave_up_harms_nobody() -> None:
    changes = Changes()
    gone = asyncio.create_task(changes.next())
    there = asyncio.create_task(changes.next())
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.sleep(0)
    changes.tell()
    await there
    assert gone.cancelled()


async def test_what_changes_while_one_looks_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    changes, shelf = Changes(), list[str]()

    async def is_full() -> bool:
        full = bool(shelf)
        await asyncio.sleep(0)
        return full

    async def missing() -> str:
        return "an empty shelf"

    waiting = asyncio.create_task(changes.until_so(is_full, missing))
    await asyncio.sleep(0)
    shelf.append("book")
    changes.tell()
    await waiting
    monkeypatch.setattr(waits, "PATIENCE", 0.01)
    shelf.clear()
    with pytest.raises(NeverCame, match="an empty shelf"):
        await changes.until_so(is_full, missing)
