"""The wire to a process of an ACP agent: JSON-RPC messages, a line each.

Law: what the agent tells is taken in as it is read, so that all of it is known before its prompt counts as answered.
No more is read while a turn can't take in what was told to it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of one message: a picture fits in."""
_GARBAGE = 100
"""Lines that aren't messages, one after the other, which a program may write before it counts as broken."""
_UPDATE = "session/update"


class ProcessLines:
    """The messages of a process, a line each."""

    def __init__(
        self, hear: Callable[[Any], Awaitable[None]], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._hear = hear
        self._reader = reader
        self._writer = writer
        self._sending = asyncio.Lock()
        self.over = ""
        """Why nothing more comes, once that is so."""

    async def send(self, message: dict[str, Any]) -> None:
        """Write one."""
        if message.get("method") == "initialize":
            # Only those who say so are told of sub-agents, which the library doesn't know yet.
            message["params"]["clientCapabilities"]["subagents"] = {}
        async with self._sending:
            self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
            await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        """The next one; None if there are no more."""
        garbage = 0
        while garbage < _GARBAGE:
            try:
                line = await self._reader.readline()
            except ValueError:
                self.over = f"it wrote a line of more than {LONGEST_LINE // 1024 // 1024} MB"
                return None
            except ConnectionError:
                line = b""
            if not line:
                self.over = "it ended"
                return None
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None
            if isinstance(message, dict):
                if message.get("method") != _UPDATE:
                    return message
                garbage = 0
                await self._hear(message.get("params"))
                # A flood of them would keep everybody else from going on.
                await asyncio.sleep(0)
                continue
            garbage += 1 if line.strip() else 0
        self.over = f"it wrote {_GARBAGE} lines that are no messages of ACP"
        return None

    async def close(self) -> None:
        """Tell it that nothing more is written."""
        self._writer.close()
