"""The wire to an editor: JSON-RPC messages, one in a line, or one in a frame of a WebSocket.

Law: whatever comes in that is no message gets an error that says so, and the next one is read.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

LONGEST = 32 * 1024 * 1024
"""Bytes of one message: a picture with a prompt is one."""
_PARSE, _INVALID = -32700, -32600


class Pipe(Protocol):
    """Where messages come from and go to."""

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        ...

    async def receive(self) -> dict[str, Any] | None:
        """The next message; None at the end."""
        ...

    async def close(self) -> None:
        """End it."""
        ...


class Texts:
    """Messages in texts that somebody else carries."""

    def __init__(
        self, read: Callable[[], Awaitable[str | bytes | None]], write: Callable[[str], Awaitable[None]]
    ) -> None:
        self._read = read
        self._write = write

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message; what JSON can't hold is sent as words."""
        await self._write(json.dumps(message, default=str, ensure_ascii=False, separators=(",", ":")))

    async def receive(self) -> dict[str, Any] | None:
        """The next message that is one; None at the end."""
        while (text := await self._read()) is not None:
            if not text.strip():
                continue
            try:
                message = json.loads(text)
            except (ValueError, RecursionError) as error:
                await self.refuse(_PARSE, f"This is no JSON: {error}.")
                continue
            if wrong := _wrong(message):
                await self.refuse(_INVALID, wrong, message.get("id") if isinstance(message, dict) else None)
                continue
            return _with_meta(message)
        return None

    async def refuse(self, code: int, why: str, id: object = None) -> None:
        """Say that something isn't a message."""
        known = id if isinstance(id, str | int) else None
        await self.send({"jsonrpc": "2.0", "id": known, "error": {"code": code, "message": why}})

    async def close(self) -> None:
        """Do nothing: whoever carries the texts ends that."""


def _wrong(message: object) -> str:
    """Why something isn't a message; empty if it is."""
    if not isinstance(message, dict):
        return "A message is an object."
    if "method" in message and not isinstance(message["method"], str):
        return "method: it isn't a string."
    if not isinstance(message.get("id"), str | int | None):
        return "id: it is neither a string nor a number."
    if not isinstance(message.get("params"), dict | None):
        return "params: it isn't an object."
    if "method" not in message and not isinstance(message.get("error"), dict | None):
        return "error: it isn't an object."
    return "" if "method" in message or "id" in message else "A message has a method or an id."


def _with_meta(message: dict[str, Any]) -> dict[str, Any]:
    """The same with its extra data as one value: the library takes each for a parameter of that name."""
    params = message.get("params")
    if "method" in message and isinstance(params, dict):
        given = params.pop("_meta", None)
        meta = given if isinstance(given, dict) else {}
        if "messageId" in params:
            meta = {**meta, "messageId": params["messageId"]}
        if meta:
            params["_meta"] = {"meta": meta}
    return message


class StdioLines:
    """Texts in lines, over the streams of a process."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._writing = asyncio.Lock()
        self.pipe = Texts(self._read, self._write)

    async def _read(self) -> bytes | None:
        """The next line; a longer one than may be is passed over."""
        long = False
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                await self._reader.readexactly(error.consumed)
                long = True
                continue
            except asyncio.IncompleteReadError as error:
                return error.partial or None
            except ConnectionError:
                return None
            if not long:
                return line
            long = False
            await self.pipe.refuse(_INVALID, f"A message has at most {LONGEST:,} bytes.")

    async def _write(self, text: str) -> None:
        async with self._writing:
            self._writer.write(text.encode("utf-8", "replace") + b"\n")
            await self._writer.drain()
