"""The gateway: from a message accepted to the agent that is asked, to the answer, to the takeover; and at rest."""

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

from bench.databases import Databases
from bench.servers import server
from bench.table import Line, Target, milliseconds
from segue import Address, Identity, Kind, Place, Text, open_store
from segue.core.contracts.adapters import Connection, Intake
from segue.core.contracts.agents import Event, Work
from segue.core.messages import Arrival, Delivery, Sending, Speaker
from segue.core.people import UNBOUNDED
from segue.core.settings import AccountSettings, GatewaySettings
from segue.runtime.gateway import Gateway
from tests.drills.gateways import Plan, start
from tests.drills.town import Town
from tests.forge import kill
from tests.ports import free_port

_MESSAGES = 200
_TAKEOVERS = 5
_LEASE = 1.0
_HELPS = 9


class Stopwatch:
    """An adapter and an agent in one, which note when they are called."""

    platform, account = "bench", "watch"
    sending, connection = Sending.KEYED, Connection.ANY

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.sent: list[float] = []
        self._news = asyncio.Event()

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        del work
        self.asked.append(time.perf_counter())
        yield Text("yes")

    async def run(self, intake: Intake) -> None:
        intake.connected()
        await asyncio.Event().wait()

    def fits(self, text: str) -> bool:
        return len(text) <= 4000

    async def send(self, delivery: Delivery) -> str:
        self.sent.append(time.perf_counter())
        self._news.set()
        return delivery.key

    async def until_sent(self, count: int) -> None:
        while len(self.sent) < count:
            self._news.clear()
            await self._news.wait()


async def overhead(databases: Databases) -> AsyncIterator[Line]:
    """What a message costs beside the agent's own time, one at a time."""
    del databases
    with tempfile.TemporaryDirectory(prefix="segue-bench-") as scratch:
        async for line in _overhead("SQLite", str(Path(scratch) / "segue.db"), 5):
            yield line
    async with server() as dsn:
        async for line in _overhead("PostgreSQL", dsn, 15):
            yield line


async def _overhead(name: str, where: str, most: float) -> AsyncIterator[Line]:
    watch = Stopwatch()
    settings = GatewaySettings(accounts={("bench", "watch"): AccountSettings(public=True)}, limits=UNBOUNDED)
    accepted: list[float] = []
    durable: list[float] = []
    async with await open_store(where) as store, Gateway(store, watch, [watch], settings) as gateway:
        for n in range(_MESSAGES):
            place = Place(Address("bench", "watch", chat=f"c{n % 10}"), Kind.DM)
            speaker = Speaker(Identity("bench", "watch", f"c{n % 10}"), "Ann")
            accepted.append(time.perf_counter())
            await gateway.accept(Arrival(place, str(n), speaker, (Text("hello"),), time.time()))
            durable.append(time.perf_counter())
            await watch.until_sent(n + 1)
    began = statistics.median(a - b for a, b in zip(watch.asked, durable, strict=True))
    whole = statistics.median(a - b for a, b in zip(watch.sent, accepted, strict=True))
    what = f"{name}: accepted to agent asked, p50"
    yield Line("overhead", what, milliseconds(began), "", None, Target("<", most, "ms"), began * 1000)
    yield Line("overhead", f"{name}: message in to answer handed to the platform, p50", milliseconds(whole))


async def takeover(databases: Databases) -> AsyncIterator[Line]:
    """A replica is killed in the middle of a turn; until the other has answered it."""
    del databases
    async with server() as dsn:
        took = [await _takeover(dsn, round_) for round_ in range(_TAKEOVERS)]
    what = f"killed in a turn to answered by the other, lease {_LEASE:g} s, p50"
    yield Line("takeover", what, milliseconds(statistics.median(took)), "the lease itself 1 s")


async def _takeover(dsn: str, round_: int) -> float:
    town = Town(1, round_)
    async with town.platform():
        dying = await asyncio.to_thread(start, Plan(dsn, town.port, town.callback, lease=_LEASE, pace=60.0))
        other_port = free_port()
        other = await asyncio.to_thread(start, Plan(dsn, other_port, town.callback, lease=_LEASE))
        try:
            await town.ready()
            await town.say(f"chat{round_}", f"chat{round_}-message-0")
            await asyncio.sleep(0.2)
            began = time.perf_counter()
            await asyncio.to_thread(kill, dying)
            await town.hears(f"chat{round_}", "I am")
            return time.perf_counter() - began
        finally:
            for gateway in (dying, other):
                await asyncio.to_thread(kill, gateway)


async def idle(databases: Databases) -> AsyncIterator[Line]:
    """`segue serve` with the terminal and the page, at rest; and `segue --help`."""
    del databases
    memory = await asyncio.to_thread(_at_rest) / 1e6
    yield Line("idle", "segue serve at rest", f"{memory:.1f} MB", "", None, Target("<", 70, "MB"), memory)
    p50 = await asyncio.to_thread(_help)
    what = "segue --help, whole process, p50"
    yield Line("idle", what, milliseconds(p50), "", None, Target("<", 150, "ms"), p50 * 1000)


def _at_rest() -> int:
    """Bytes that a gateway holds two seconds after it began to serve."""
    with tempfile.TemporaryDirectory(prefix="segue-bench-") as scratch:
        (Path(scratch) / "segue.toml").write_text("")
        command = [sys.executable, "-m", "segue", "serve", "--port", "0"]
        environment = {**os.environ, "SEGUE_HOME": scratch}
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as serving:
            assert serving.stdout is not None
            serving.stdout.readline()
            time.sleep(2.0)
            memory = _resident(serving.pid)
            serving.send_signal(signal.SIGTERM)
    return memory


def _help() -> float:
    """Seconds that `segue --help` takes, p50."""
    took = []
    for _ in range(_HELPS):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "segue", "--help"], check=True, capture_output=True)
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
