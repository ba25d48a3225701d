"""Health: it goes by what is durable, and knows what is wrong until that is over."""

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from segue.adapters.http import Http
from segue.changes import lockers
from segue.changes.exchange import letters, replicas
from segue.core.accounts import Reach
from segue.core.contracts.database import Driver, Transaction
from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import Arrival, Speaker, Text
from segue.core.values import Secret
from segue.database.sqlite import Sqlite
from segue.errors import SendLater, SendNever, SendUnsure, StoreFull, StoreUnreachable
from segue.runtime.gateway import Gateway
from segue.runtime.outbox import Outlet
from segue.runtime.retrying import Patient
from segue.store import open_driver
from segue.testing import HandClock, Shelf
from segue.testing.agents import EchoAgent
from segue.testing.personas import WhatsApp
from segue.testing.waits import PATIENCE
from tests.database.disk import Disk
from tests.in_process import gateway_on
from tests.ports import free_port
from tests.runtime.test_poison import arrival

P = ParamSpec("P")
T = TypeVar("T")


def gateway(path: Path, platform: WhatsApp) -> AbstractAsyncContextManager[Gateway]:
    return gateway_on(str(path), EchoAgent(), platform, lease=0.6)


async def unwell(running: Gateway, words: str) -> None:
    """Wait until the gateway says what is wrong."""
    async with asyncio.timeout(90):
        while not any(words in problem for problem in running.problems()):  # noqa: ASYNC110 -- nobody tells
            await asyncio.sleep(0.02)


async def well(running: Gateway) -> None:
    """Wait until the gateway says that nothing is wrong."""
    async with asyncio.timeout(90):
        while running.problems():  # noqa: ASYNC110 -- nobody tells
            await asyncio.sleep(0.02)


async def test_commands_may_ask_what_is_wrong_from_their_own_thread(tmp_path: Path) -> None:
    async with gateway(tmp_path / "segue.db", WhatsApp()) as running:
        running._turns.turned_away()
        assert await asyncio.to_thread(running.problems) == []


@pytest.mark.parametrize("fate", ["deleted", "replaced"])
async def test_a_file_that_is_gone_stops_accepting_and_says_so_until_it_is_back(tmp_path: Path, fate: str) -> None:
    path, platform = tmp_path / "segue.db", WhatsApp()
    async with gateway(path, platform) as running:
        await running.accept(arrival(platform, 1, "hello"))
        assert running.problems() == []
        await asyncio.to_thread(path.rename, tmp_path / "away.db")
        if fate == "replaced":
            await asyncio.to_thread(path.write_bytes, b"")
        with pytest.raises(StoreUnreachable, match="deleted or replaced"):
            await running.accept(arrival(platform, 2, "hello"))
        await unwell(running, "deleted or replaced")
        await running.store.driver.read(letters.count)  # what can still be read clears nothing
        assert running.problems()
        await asyncio.to_thread((tmp_path / "away.db").rename, path)
        await well(running)
        await running.accept(arrival(platform, 3, "hello"))


def hold(answers: threading.Event) -> None:
    answers.wait(30)


async def test_a_disk_that_hangs_is_told_until_it_answers(tmp_path: Path) -> None:
    disk, platform, answers = Disk(), WhatsApp(), threading.Event()
    driver = await Sqlite.open(tmp_path / "segue.db", vfs=disk.name)
    async with gateway_on(driver, EchoAgent(), platform, lease=0.6, poll=0.05) as running:
        await running.accept(arrival(platform, 1, "hello"))
        assert running.problems() == []
        disk.guard = lambda _: hold(answers)
        waiting = asyncio.create_task(running.accept(arrival(platform, 2, "hello")))
        try:
            await unwell(running, "hasn't taken a heartbeat in time. See whether its disk or server answers.")
            assert not running.ready
            assert not waiting.done(), "nothing is acknowledged that isn't durable"
        finally:
            answers.set()
        await waiting
        await well(running)


class FullDisk:
    """A database that can be read, and written to no more."""

    def __init__(self) -> None:
        self.full = True

    async def write(self, *_: object) -> None:
        if self.full:
            raise StoreFull("the disk is full")

    async def read(self, *_: object) -> int:
        return 1


async def test_a_read_that_works_clears_no_trouble_of_writing() -> None:
    disk = FullDisk()
    store = Patient(disk)  # type: ignore[arg-type]  # as much of a driver as this needs
    writing = asyncio.create_task(store.write(letters.count))
    while not store.trouble:  # noqa: ASYNC110 -- nobody tells
        await asyncio.sleep(0)
    await store.read(letters.count)
    assert store.trouble == "the disk is full"
    disk.full = False
    await writing
    assert store.trouble == ""


async def test_damage_that_no_query_hits_is_found_and_known_until_it_is_over(tmp_path: Path) -> None:
    path, platform = tmp_path / "segue.db", WhatsApp()
    async with gateway(path, platform) as running:
        for _ in range(60):
            await running.store.driver.write(letters.bury, "whatsapp/main/", "x" * 3000, "no", 1.0)
        await running._soundness.once()
        assert running.problems() == []
        sound = await asyncio.to_thread(damage, path)
        await running._soundness.once()
        assert any("segue.db: it is damaged" in problem for problem in running.problems())
        assert any("restore a backup" in problem for problem in running.problems())
        await asyncio.to_thread(mend, path, sound)
        await running._soundness.once()
        assert running.problems() == []


def damage(path: Path) -> bytes:
    """Overwrite the last pages of a file, in place; returns what was in them."""
    with path.open("r+b") as file:
        file.seek(-20 * 4096, os.SEEK_END)
        sound = file.read()
        file.seek(-20 * 4096, os.SEEK_END)
        file.write(b"\xff" * len(sound))
    return sound


def mend(path: Path, sound: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(-len(sound), os.SEEK_END)
        file.write(sound)


async def test_a_callback_that_fails_for_a_while_is_trouble_until_a_call_works(tmp_path: Path) -> None:
    ticks = HandClock(100.0)
    adapter = Http("a", Secret("s"), f"http://127.0.0.1:{free_port()}/out", Shelf())
    async with gateway_on(tmp_path, EchoAgent(), adapter, poll=0.02) as running:
        outlet = running._outboxes["http", "a"].outlet = Outlet(ticks)
        place = Place(Address("http", "a", "", "c"), Kind.DM)
        speaker = Speaker(Identity("http", "a", "u"), "Ann")
        await running.accept(Arrival(place, "1", speaker, (Text("hello"),), 1.0))
        while outlet.failures < 3:  # noqa: ASYNC110 -- nobody tells
            await asyncio.sleep(0.02)
        assert running.problems() == [], "it has only just begun"
        ticks.passes(120.0)
        [problem] = running.problems()
        assert problem.startswith("http.a isn't connected: nothing could be sent for 2 min")
        assert "the callback can't be reached" in problem
        assert running.accounts["http.a"].reach is Reach.BROKEN
        outlet.worked()
        assert running.problems() == []
    await adapter.close()


def test_a_platform_that_asks_for_patience_or_refuses_one_message_is_no_trouble() -> None:
    ticks = HandClock(0.0)
    outlet = Outlet(ticks)
    for error in (SendLater("429", 30.0), SendNever("no such chat"), SendUnsure("broke off"), SendUnsure("again")):
        outlet.failed(error)
        ticks.passes(100.0)
    assert outlet.trouble == ""
    outlet.failed(SendLater("can't be reached"))
    assert outlet.trouble.endswith("can't be reached")


class NoRoomForMessages:
    """A database on a disk where a heartbeat still fits, and a message doesn't."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.read, self.hint, self.listen, self.close = driver.read, driver.hint, driver.listen, driver.close
        self.copies, self.scrub, self.damage = driver.copies, driver.scrub, driver.damage
        self.full = False
        self.beats = 0

    async def write(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        large = transaction.__qualname__ == "FrontDoor.accept" or transaction is lockers.keep
        if self.full and large:
            raise StoreFull("the disk is full")
        self.beats += transaction is replicas.beat
        return await self._driver.write(transaction, *args, **kwargs)


async def test_a_message_that_finds_no_room_is_trouble_until_one_would(tmp_path: Path) -> None:
    disk, platform = NoRoomForMessages(await open_driver(tmp_path / "segue.db")), WhatsApp()
    async with gateway_on(disk, EchoAgent(), platform, lease=0.6, poll=0.05) as running:
        await running.accept(arrival(platform, 1, "hello"))
        assert running.ready
        disk.full = True
        with pytest.raises(StoreFull):
            await running.accept(arrival(platform, 2, "hello"))
        before = disk.beats
        async with asyncio.timeout(PATIENCE):
            while disk.beats < before + 3:  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.02)
        assert (running.problems(), running.ready) == (["the disk is full"], False)
        disk.full = False
        await well(running)
        assert running.ready
        assert await running.store.driver.read(lockers.read, "segue/probe/", "") == {}
