"""A tap on a button in Telegram: from there to the agent, which waits for the answer and goes on."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.databases import Databases
from bench.skipped import Skipped
from bench.table import Line, Target, milliseconds
from segue.agents.given import as_agent
from segue.core.contracts.agents import Work
from segue.core.lanes import Address, Identity
from tests.servers import modules
from tests.servers.crabline import Between, telegram
from tests.stories.test_telegram import pressing, running

_TAPS = 60
_PATIENCE = 30.0


async def tap(databases: Databases) -> AsyncIterator[Line]:
    """Somebody is asked again and again, and taps on yes; the bot polls, and crabline is Telegram."""
    del databases
    try:
        modules()
    except pytest.skip.Exception as missing:
        raise Skipped(str(missing)) from missing
    with tempfile.TemporaryDirectory(prefix="segue-bench-", ignore_cleanup_errors=True) as scratch:
        async with telegram(Path(scratch)) as (between, url):
            took = sorted(await _took(between, url, Path(scratch)))
    p50, p95 = statistics.median(took), took[int(len(took) * 0.95)]
    for what, figure in (("p50", p50), ("p95", p95)):
        name = f"a tap on Telegram's button to the agent going on, {what}"
        yield Line("tap", name, milliseconds(figure), "", None, Target("<", 100, "ms"), figure * 1000)


async def _took(between: Between, url: str, folder: Path) -> list[float]:
    went_on: asyncio.Queue[float] = asyncio.Queue()

    async def asks(work: Work) -> str:
        await work.ask(f"May I, {work.turn}?", ("yes", "no"))
        await went_on.put(time.perf_counter())
        return f"Done, {work.turn}."

    took = []
    # The host, whose messages aren't counted.
    host, chat = Identity("telegram", "bot", "501"), Address("telegram", "bot", "", "501")
    async with running(folder, url, as_agent(asks), hosts=(host,)), asyncio.timeout(_TAPS * _PATIENCE):
        for n in range(1, _TAPS + 1):
            await between.says("501", f"do it, {n}")
            asked = await between.shows(chat, f"May I, {n}?")
            began = time.perf_counter()
            await between.says("501", "tapped", doctor=pressing(asked.message, "yes"))
            took.append(await went_on.get() - began)
            await between.shows(chat, f"Done, {n}.")
    return took
