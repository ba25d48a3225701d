"""A peer in a process of its own."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.peers.environment import ROOT
from bench.skipped import Skipped

_PATIENCE = 10.0


class Failed(Exception):
    """A peer couldn't do it, in its own words."""


class PeerProcess:
    """Asks a peer for turns, line by line."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, at_once: int) -> None:
        self.name = name
        self._process = process
        self._at_once = at_once

    @classmethod
    async def start(cls, name: str, module: str, python: Path, folder: Path, at_once: int) -> "PeerProcess":
        process = await asyncio.create_subprocess_exec(
            *(str(python), "-m", f"bench.peers.{module}", str(folder)),
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=(folder / "log").open("w"),
            limit=2**20,
        )
        return cls(name, process, at_once)

    async def fill(self, database: str, conversations: int) -> None:
        await self._ask(database, "fill", conversations=conversations)

    async def turns(self, conversations: Sequence[int]) -> float:
        return await self._ask("some", "turns", conversations=list(conversations))

    async def together(self, conversations: Sequence[int]) -> float:
        return await self._ask("some", "together", conversations=list(conversations), at_once=self._at_once)

    async def find(self, conversations: Sequence[int]) -> float:
        """The median of the seconds that it takes to find one among many."""
        return await self._ask("many", "find", conversations=list(conversations))

    async def close(self) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _PATIENCE)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def _ask(self, database: str, do: str, **more: Any) -> float:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise ValueError("a peer talks through pipes")
        stdin.write(json.dumps({"database": database, "do": do, **more}).encode() + b"\n")
        await stdin.drain()
        answer = await stdout.readline()
        if not answer:
            raise Skipped(f"{self.name} ended with {await self._process.wait()}")
        told = json.loads(answer)
        if "failed" in told:
            raise Failed(told["failed"])
        return float(told["seconds"])
