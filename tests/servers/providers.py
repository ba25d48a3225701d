"""npm's servers, all of them in one Node process that this process starts when the first is asked for."""

from __future__ import annotations

import asyncio
import atexit
import functools
import itertools
import json
import subprocess
import threading
from pathlib import Path
from typing import Any, NamedTuple

from tests.ports import free_port
from tests.servers import modules, node


class Started(NamedTuple):
    """A server that runs."""

    number: int
    url: str


class Providers:
    """The Node process; it ends with this one, however this one ends."""

    def __init__(self) -> None:
        command = [node(), Path(__file__).with_suffix(".mjs"), modules()]
        # In a session of its own: Ctrl-C is for the tests, which then stop their servers.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self._turn = threading.Lock()
        atexit.register(self._end)

    def ask(self, **asked: Any) -> Any:
        """Ask for something to be done, and wait until it is."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._turn:
            print(json.dumps(asked), file=self._process.stdin, flush=True)
            answer = json.loads(self._process.stdout.readline() or '{"error": "Node has ended"}')
        if "error" in answer:
            raise RuntimeError(f"{asked}: {answer['error']}")
        return answer

    def _end(self) -> None:
        with self._process:
            self._process.kill()


_providers = functools.cache(Providers)


async def start(kind: str, **settings: Any) -> Started:
    """Start a server of a kind; skips the test where it isn't installed."""
    modules()
    return Started(**await asyncio.to_thread(lambda: _providers().ask(start=kind, **{"with": settings})))


async def stop(server: Started) -> None:
    """End it at once, as a machine that loses its power does."""
    await asyncio.to_thread(lambda: _providers().ask(stop=server.number))


class Crabline:
    """A platform that crabline stands for; it can be stopped, and started again on its port."""

    def __init__(self, platform: str, folder: Path, **settings: Any) -> None:
        self._kind = f"crabline:{platform}"
        self._folder = folder
        self._settings = settings
        self._port = free_port()
        self._starts = itertools.count(1)
        self._server: Started | None = None
        self.url = f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        # The record of one that was stopped stays locked.
        record = self._folder / f"{self._kind.replace(':', '-')}-{next(self._starts)}" / "calls.jsonl"
        self._server = await start(self._kind, port=self._port, recorderPath=str(record), **self._settings)

    async def stop(self) -> None:
        """End it at once, as a machine that loses its power does."""
        server, self._server = self._server, None
        if server is not None:
            await stop(server)
