"""A gateway in a process of its own, with a function as its agent, which tells what it costs."""

import asyncio
import multiprocessing
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from bench.people import ACCOUNT, SECRET, People
from segue.adapters.http import HttpAccount
from segue.core.people import UNBOUNDED
from segue.core.settings import AccountSettings, GatewaySettings
from segue.core.values import Secret
from segue.database.sqlite import Sqlite
from segue.runtime.gateway import Gateway
from segue.runtime.server.app import make_app
from segue.runtime.server.listeners import Listener, serving
from segue.store import Store, open_driver
from segue.testing import Shelf
from tests.database.disk import Disk
from tests.ports import free_port

_PAUSE = 0.3


class Cost(NamedTuple):
    """Figures of a process since it began."""

    cpu: float
    """Seconds."""
    memory: int
    """Bytes that it holds now."""
    syncs: int

    def since(self, before: "Cost") -> "Cost":
        return Cost(self.cpu - before.cpu, self.memory - before.memory, self.syncs - before.syncs)


class Served:
    """The gateway as its people know it."""

    def __init__(self, people: People, pipe: Connection) -> None:
        self.people = people
        self._pipe = pipe

    async def cost(self) -> Cost:
        self._pipe.send("cost")
        return Cost(*await asyncio.to_thread(self._pipe.recv))

    async def rest(self) -> None:
        """Wait until it has done what a start brings with it: the file is looked through for damage."""
        before = await self.cost()
        while True:
            await asyncio.sleep(_PAUSE)
            now = await self.cost()
            if now.since(before).cpu < _PAUSE / 10:
                return
            before = now


@asynccontextmanager
async def served(where: str, *, counts_syncs: bool = False) -> AsyncIterator[Served]:
    """A gateway over a database, until it is left; one that counts syncs takes more time for each."""
    port = free_port()
    people = People(port)
    platform = await people.platform()
    callback = f"http://127.0.0.1:{platform.sockets[0].getsockname()[1]}/out"
    ours, theirs = multiprocessing.Pipe()
    arguments = (where, port, callback, theirs, counts_syncs)
    process = multiprocessing.get_context("spawn").Process(target=_main, args=arguments)
    process.start()
    try:
        await asyncio.to_thread(ours.recv)
        yield Served(people, ours)
        ours.send("end")
        await asyncio.to_thread(process.join)
    finally:
        process.kill()
        platform.close()


def _main(where: str, port: int, callback: str, pipe: Connection, counts_syncs: bool) -> None:  # noqa: FBT001 -- by position
    asyncio.run(_serve(where, port, callback, pipe, Disk() if counts_syncs else None))


async def _serve(where: str, port: int, callback: str, pipe: Connection, disk: Disk | None) -> None:
    async def reply(text: str) -> str:
        return f"heard {text}"

    ended = asyncio.Event()

    def asked() -> None:
        if pipe.recv() == "end":
            ended.set()
        else:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            syncs = disk.done["sync"] if disk else 0
            pipe.send((time.process_time(), pages * os.sysconf("SC_PAGE_SIZE"), syncs))

    driver = await (Sqlite.open(Path(where), vfs=disk.name) if disk else open_driver(where))
    adapter = HttpAccount(Secret(SECRET), callback).adapter(ACCOUNT, Shelf())
    settings = GatewaySettings(accounts={("http", ACCOUNT): AccountSettings(public=True)}, limits=UNBOUNDED)
    async with (
        Store(driver) as store,
        Gateway(store, reply, [adapter], settings) as gateway,
        serving(make_app(gateway), Listener("127.0.0.1", port)),
    ):
        asyncio.get_running_loop().add_reader(pipe.fileno(), asked)
        pipe.send("ready")
        await ended.wait()
        asyncio.get_running_loop().remove_reader(pipe.fileno())
    await adapter.close()
