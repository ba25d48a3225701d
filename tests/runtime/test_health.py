"""Health: it goes by what is durable, and knows what is wrong until that is over."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from segue import open_store
from segue.changes.exchange import letters
from segue.core.settings import AccountSettings, GatewaySettings
from segue.errors import StoreFull, StoreUnreachable
from segue.runtime.gateway import Gateway
from segue.runtime.retrying import Patient
from segue.testing.agents import EchoAgent
from segue.testing.personas import WhatsApp
from tests.runtime.test_poison import arrival


@asynccontextmanager
async def gateway(path: Path, platform: WhatsApp) -> AsyncIterator[Gateway]:
    settings = GatewaySettings(
        accounts={(platform.name, platform.account): AccountSettings(public=True)}, poll=0.05, grace=0.0, lease=0.6
    )
    async with (
        await open_store(path) as store,
        Gateway(store, EchoAgent(), [platform.adapter()], settings) as running,
    ):
        yield running


async def unwell(running: Gateway, words: str) -> None:
    """Wait until the gateway says what is wrong."""
    async with asyncio.timeout(10):
        while not any(words in problem for problem in running.problems()):  # noqa: ASYNC110 -- nobody tells
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
        async with asyncio.timeout(10):
            while running.problems():  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.02)
        await running.accept(arrival(platform, 3, "hello"))


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
