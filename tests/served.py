"""A `segue serve` in a process of its own, which can be killed and started again at the same place."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

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
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Run it; at the same port as before if it ran before."""
        port = self.url.rpartition(":")[2] or "0"
        with (self.home / "err").open("ab") as errors:
            process = self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "segue", "serve", *self._agent, "--port", port),
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env=os.environ | {"SEGUE_HOME": str(self.home), "PYTHONPATH": str(ROOT)},
                cwd=self.home,
            )
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            told = [(await process.stdout.readline()).decode() for _ in range(3)]
        links = re.findall(r"http://\S+", "".join(told))
        assert len(links) == 2, (told, (self.home / "err").read_text())
        self.url, self.link = links

    @property
    def runs(self) -> bool:
        """Whether it hasn't ended."""
        return self._process is not None and self._process.returncode is None

    async def end(self, number: int = signal.SIGKILL) -> int:
        """End it by a signal; returns its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(number)
        await process.communicate()
        assert process.returncode is not None
        return process.returncode


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
