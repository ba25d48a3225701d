"""The long connection: opened at an address that Feishu gives for one, kept up by pings, acknowledged part by part."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from msgspec.structs import replace
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from segue.adapters.feishu.api import Api
from segue.adapters.feishu.frames import CONTROL, DATA, Frame, decode, encode
from segue.adapters.shared.trust import trust
from segue.errors import Disconnected, Invalid

_LARGEST = 16 * 1024 * 1024
_OPENING = 10.0
_PING = 120.0
"""Seconds between two pings, unless Feishu says otherwise."""
_HALVES = 100
"""Deliveries of which not all parts are there yet."""


class Line:
    """One connection, over which Feishu tells what happens."""

    def __init__(self, line: ClientConnection, service: int, every: float) -> None:
        self._line = line
        self._service = service
        self._every = every
        self._halves: dict[str, dict[int, bytes]] = {}

    async def told(self) -> AsyncIterator[tuple[Frame, bytes]]:
        """Everything that is told, until Feishu hangs up: the frame that completes it, and the whole of it."""
        async for raw in self._line:
            frame = decode(raw if isinstance(raw, bytes) else raw.encode())
            if frame.method == DATA and (whole := self._whole(frame)) is not None:
                yield frame, whole
            elif frame.method == CONTROL and frame.payload:
                self._every = _seconds(_json(frame.payload), self._every)

    async def acknowledge(self, frame: Frame) -> None:
        """Let Feishu forget what came with a frame."""
        await self._line.send(encode(replace(frame, payload=b'{"code":200}')))

    async def ping(self) -> None:
        """Keep the connection up, until cancelled."""
        while True:
            await self._line.send(encode(Frame((0, 0, self._service, CONTROL), {"type": "ping"})))
            await asyncio.sleep(self._every)

    def _whole(self, frame: Frame) -> bytes | None:
        """The content that a frame completes; None while parts of it are missing."""
        count, n = _number(frame.headers.get("sum", "1")), _number(frame.headers.get("seq", "0"))
        if count <= 1:
            return frame.payload
        name = frame.headers.get("message_id", "")
        parts = self._halves.setdefault(name, {})
        parts[n] = frame.payload
        if len(self._halves) > _HALVES:
            del self._halves[next(iter(self._halves))]
        if len(parts) < count:
            return None
        self._halves.pop(name, None)
        return b"".join(parts[key] for key in sorted(parts))


@asynccontextmanager
async def opened(api: Api) -> AsyncIterator[Line]:
    """A connection for an app; raises `Disconnected` when the line breaks."""
    there = await api.endpoint()
    url = str(there.get("URL", ""))
    service = _number((parse_qs(urlsplit(url).query).get("service_id") or ["0"])[0])
    tls = trust() if url.startswith("wss:") else None
    try:
        async with connect(url, ssl=tls, max_size=_LARGEST, open_timeout=_OPENING, close_timeout=1) as socket:
            line = Line(socket, service, _seconds(there.get("ClientConfig"), _PING))
            pinging = asyncio.create_task(line.ping())
            try:
                yield line
            finally:
                pinging.cancel()
                await asyncio.wait([pinging])
    except (ConnectionClosed, InvalidHandshake, InvalidURI, Invalid, OSError, TimeoutError) as error:
        raise Disconnected(f"the line to Feishu broke ({type(error).__name__})") from error


def _seconds(config: Any, otherwise: float) -> float:
    every = config.get("PingInterval") if isinstance(config, dict) else None
    return float(every) if isinstance(every, int) and every > 0 else otherwise


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < _LONGEST else 0


_LONGEST = 10
"""Digits of a number that a frame or an address names."""


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None
