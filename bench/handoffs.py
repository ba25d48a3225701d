"""A handoff over HTTP: from the command that asks for it to the agent's message in the new place."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2

from bench.databases import Databases
from bench.table import Line, Target, milliseconds
from tests.drills.gateways import Plan, start
from tests.drills.town import Town
from tests.forge import kill

_PEOPLE = 40
_LEASE = 5.0
"""Seconds: with it goes the poll, so slow that only hints can be fast."""


async def handoff(databases: Databases) -> AsyncIterator[Line]:
    """Everybody hands their conversation off, one after the other."""
    del databases
    with tempfile.TemporaryDirectory(prefix="segue-bench-") as scratch:
        took = sorted(await _took(str(Path(scratch) / "segue.db")))
    p50, p95 = statistics.median(took), took[int(len(took) * 0.95)]
    for what, figure in (("p50", p50), ("p95", p95)):
        name = f"/handoff over HTTP to the message in its new thread, {what}"
        yield Line("handoff", name, milliseconds(figure), "", None, Target("<", 150, "ms"), figure * 1000)


async def _took(where: str) -> list[float]:
    town = Town(0, 1)
    async with town.platform(), town.client() as client:
        gateway = await asyncio.to_thread(start, Plan(where, town.port, town.callback, lease=_LEASE, threads=True))
        try:
            await town.ready()
            for n in range(_PEOPLE):
                for chat in ("phone", "laptop"):
                    await _says(town, client, f"p{n}", chat, "hello", "hello")
                    await town.answer(f"p{n}-{chat}-hello")
            return [await _one(town, client, f"p{n}") for n in range(_PEOPLE)]
        finally:
            await asyncio.to_thread(kill, gateway)


async def _one(town: Town, client: httpx2.AsyncClient, who: str) -> float:
    phone = f"{who}-phone"
    before = len(town.texts(phone))
    began = time.perf_counter()
    saying = asyncio.create_task(_says(town, client, who, "laptop", f"/handoff alpha:{phone}", "handoff"))
    await town.gets(phone, before + 1)
    taken = time.perf_counter() - began
    await saying
    return taken


async def _says(town: Town, client: httpx2.AsyncClient, who: str, chat: str, text: str, message: str) -> None:
    # Over a connection that is open, as a platform's is.
    await town.post(client, f"{who}-{chat}", f"{who}-{chat}-{message}", text=text, person={"id": who, "name": who})
