"""The line to the bridge: its process, what it tells, and calls that it answers."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from segue.adapters.whatsapp.bridge import PROGRAM, modules, node
from segue.errors import Disconnected, SendLater, SendNever, SendUnsure

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
        call = self._calls[number] = asyncio.get_running_loop().create_future()
        self._say({"call": number, "do": what, **fields})
        said = await call
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


@asynccontextmanager
async def opened(folder: Path, url: str = "") -> AsyncIterator[Line]:
    """A process for the device whose keys are in a folder; it ends with the block."""
    command: list[str | Path] = [node(), PROGRAM, modules(), folder, *([url] if url else [])]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, limit=_LARGEST, start_new_session=True
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
