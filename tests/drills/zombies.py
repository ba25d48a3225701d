"""Two replicas; one is frozen past its lease in the middle of a turn, taken for dead, and woken."""

import asyncio
import os
import re
import signal

from segue.core.values import Value
from tests.changes.world import Engine, raw_sql
from tests.clients import http_client
from tests.drills.gateways import Plan, start
from tests.drills.planting import Bug
from tests.drills.town import Report, Town
from tests.forge import kill
from tests.ports import free_port

_REFUSED = re.compile(r"^segue_writes_refused ([0-9.]+)$", re.MULTILINE)


class Zombies(Value, frozen=True):
    """What came of it."""

    report: Report
    refused: int
    """Writes of woken replicas that the fence turned away."""
    twice: list[str]
    """What stands in a transcript more than once."""
    ill: list[str]
    """What the gateways say of their health when all is over."""

    @property
    def clean(self) -> bool:
        return self.report.clean and self.refused > 0 and not self.twice and not self.ill


async def run(where: str, rounds: int, seed: int, bug: Bug = Bug.NONE) -> Zombies:
    """Freeze a replica in a turn, see the other answer, wake the first and see its writes refused."""
    town = Town(4, seed)
    async with town.platform():
        sleeper = Plan(where, town.port, town.callback, pace=0.3, bug=bug)
        other = Plan(where, free_port(), town.callback, pace=0.05, bug=bug)
        gateways = [await asyncio.to_thread(start, sleeper), await asyncio.to_thread(start, other)]
        pid = gateways[0].pid
        assert pid is not None
        try:
            for round_ in range(rounds):
                await _ready(town)
                messages = [f"{chat}-message-{round_}" for chat in town.chats]
                await asyncio.gather(*(town.say(chat, m) for chat, m in zip(town.chats, messages, strict=True)))
                os.kill(pid, signal.SIGSTOP)
                try:
                    # Long enough for the lease, and for the locks of one that was frozen in a transaction.
                    await town.settle(8.0)
                finally:
                    os.kill(pid, signal.SIGCONT)
            await _ready(town)
            await town.settle(20.0)
            refused = await _refused(town.port)
            ill = [said for plan in (sleeper, other) for said in await _ill(plan.port)]
        finally:
            for gateway in gateways:
                await asyncio.to_thread(kill, gateway)
        return Zombies(town.compare_notes(), refused, await _twice(where), ill)


async def _ready(town: Town) -> None:
    async with asyncio.timeout(60):
        await town.ready()


async def _twice(where: str) -> list[str]:
    """What people said and agents answered, as often as it was written down, if that is more than once."""
    raw = await raw_sql(Engine.POSTGRES, where)
    try:
        rows = await raw(
            "select session, parts from entries where parts like $1 group by session, parts having count(*) > 1",
            "%I am %",
        )
    finally:
        await raw.close()
    return [f"{session}: {parts}" for session, parts in rows]


async def _ill(port: int) -> list[str]:
    """Why a gateway isn't well; a while is given to one that has just come back."""
    said = ""
    async with http_client(timeout=30.0) as client:
        for _ in range(50):
            answer = await client.get(f"http://127.0.0.1:{port}/healthz")
            if answer.status_code == 200:
                return []
            said = answer.text
            await asyncio.sleep(0.1)
    return [said]


async def _refused(port: int) -> int:
    """What a zombie still wanted to write, it tries in the moments after it wakes."""
    async with http_client(timeout=30.0) as client:
        for _ in range(50):
            metrics = await client.get(f"http://127.0.0.1:{port}/metrics")
            found = _REFUSED.search(metrics.text)
            assert found, metrics.text
            if refused := round(float(found[1])):
                return refused
            await asyncio.sleep(0.1)
    return 0
