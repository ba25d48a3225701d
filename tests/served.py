"""A `segue serve` in a process of its own, which can be killed and started again at the same place."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.forge import reading, segue

ROOT = Path(__file__).parents[1]
PATIENCE = 90.0
"""Seconds until a test is told that something never came; no test that passes waits for them."""


class Served:
    """A gateway that runs, is killed, and runs again."""

    def __init__(self, home: Path, agent: tuple[str, ...] = ()) -> None:
        self.home = home
        self._agent = agent
        self.url = ""
        self.link = ""
        self._process: BaseProcess | None = None
        self._open = AsyncExitStack()

    async def start(self) -> None:
        """Run it; at the same port as before if it ran before."""
        port = self.url.rpartition(":")[2] or "0"
        read, write = os.pipe()
        errors = os.open(self.home / "err", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        streams = os.open(os.devnull, os.O_RDONLY), write, errors
        arguments = "serve", *self._agent, "--port", port
        self._process = await asyncio.to_thread(segue, arguments, self.home, self.home, *streams)
        said = await self._open.enter_async_context(reading(read))
        async with asyncio.timeout(PATIENCE):
            told = [(await said.readline()).decode() for _ in range(3)]
        links = re.findall(r"http://\S+", "".join(told))
        assert len(links) == 2, (told, (self.home / "err").read_text())
        self.url, self.link = links

    @property
    def runs(self) -> bool:
        """Whether it hasn't ended."""
        return self._process is not None and self._process.is_alive()

    async def end(self, number: int = signal.SIGKILL) -> int:
        """End it by a signal; returns its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        if process.is_alive() and process.pid is not None:
            os.kill(process.pid, number)
        await asyncio.to_thread(process.join)
        await self._open.aclose()
        assert process.exitcode is not None
        return process.exitcode


@asynccontextmanager
async def served(home: Path, *agent: str) -> AsyncIterator[Served]:
    """A gateway with the agent MODULE:NAME, else the built-in one, until the block ends."""
    (home / "segue.toml").touch()
    made = Served(home, agent)
    try:
        await made.start()
        yield made
    finally:
        await made.end()
