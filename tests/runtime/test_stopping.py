"""A gateway that stops: it ends though its database is gone, and its platform never answers."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from segue.core.contracts.adapters import Connection, Intake
from segue.core.contracts.database import Driver, Transaction
from segue.errors import StoreClosed, StoreUnreachable
from segue.runtime.gateway import Gateway
from segue.runtime.retrying import Patient
from segue.store import Store, open_driver
from segue.testing.agents import EchoAgent
from segue.testing.waits import PATIENCE
from tests.changes.small import everything
from tests.drills.room import Wall, said, settings
from tests.today import file_of_today

P = ParamSpec("P")
T = TypeVar("T")


class Gone:
    """A database that fails, or never answers, from some moment on."""

    def __init__(self, driver: Driver, *, hangs: bool) -> None:
        self._driver = driver
        self._hangs = hangs
        self.hint, self.listen, self.close = driver.hint, driver.listen, driver.close
        self.copies, self.scrub, self.damage = driver.copies, driver.scrub, driver.damage
        self.gone = False

    async def _look(self) -> None:
        if self.gone and self._hangs:
            await asyncio.Event().wait()
        if self.gone:
            raise StoreUnreachable("nobody answers")

    async def write(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        await self._look()
        return await self._driver.write(transaction, *args, **kwargs)

    async def read(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        await self._look()
        return await self._driver.read(transaction, *args, **kwargs)


class Poller(Wall):
    """A platform that one replica speaks to, and that answers no call until somebody says so."""

    connection = Connection.ONE

    def __init__(self) -> None:
        super().__init__(lambda _what, _of: None)
        self.connected, self.called, self.answers_calls = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def run(self, intake: Intake) -> None:
        self.connected.set()
        await super().run(intake)

    async def send(self, delivery: object) -> str:
        self.called.set()
        await self.answers_calls.wait()
        return "sent"


@pytest.mark.parametrize("hangs", [True, False], ids=["hangs", "fails"])
async def test_it_stops_though_its_database_is_gone(tmp_path: Path, *, hangs: bool) -> None:
    driver, poller = Gone(await open_driver(file_of_today(tmp_path / "segue.db")), hangs=hangs), Poller()
    async with Store(driver) as store:
        gateway = Gateway(store, EchoAgent(), [poller], settings(lease=0.6))
        await gateway.__aenter__()
        await poller.connected.wait()
        await gateway.accept(said("chat", "one"))
        await poller.called.wait()
        driver.gone = True
        async with asyncio.timeout(PATIENCE):
            await gateway.stop()
        left = {task.get_name() for task in asyncio.all_tasks()} - {asyncio.current_task().get_name()}  # type: ignore[union-attr]
        assert not [name for name in left if name.startswith(("beat", "claim", "outbox", "wall", "delivery"))]
        driver.gone = False


async def test_a_store_that_was_closed_is_asked_once(tmp_path: Path) -> None:
    driver = await open_driver(file_of_today(tmp_path / "segue.db"))
    await driver.close()
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(StoreClosed, match="was closed"):
            await Patient(driver).read(everything)
