"""The long connection: opened at an address that Feishu gives for one, kept up by pings, acknowledged part by part."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

from msgspec.structs import replace
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from segue.adapters.feishu.api import Api
from segue.adapters.feishu.frames import CONTROL, DATA, Frame, decode, encode
from segue.adapters.shared.background import beside
from segue.adapters.shared.sockets import broke, line_to
from segue.errors import Disconnected, Invalid

_PING = 120.0
"""Seconds between two pings, unless Feishu says otherwise."""
_HALVES = 100
"""Deliveries of which not all parts are there yet."""


class Line:
    """One connection, over which Feishu tells what happens."""

    def __init__(self, line: ClientConnection) -> None:
        self._line = line
        self._halves: dict[str, dict[int, bytes]] = {}

    async def told(self) -> AsyncIterator[tuple[Frame, bytes]]:
        """Everything that is told, until Feishu hangs up: the frame that completes it, and the whole of it."""
        try:
            async for raw in self._line:
                frame = decode(raw if isinstance(raw, bytes) else raw.encode())
                if frame.method == DATA and (whole := self._whole(frame)) is not None:
                    yield frame, whole
        except (ConnectionClosed, Invalid) as error:
            raise broke("Feishu", error) from error
        raise Disconnected("Feishu closed the line.")

    async def acknowledge(self, frame: Frame) -> None:
        """Let Feishu forget what came with a frame."""
        try:
            await self._line.send(encode(replace(frame, payload=b'{"code":200}')))
        except ConnectionClosed as error:
            raise broke("Feishu", error) from error

    async def ping(self, service: int, every: float) -> None:
        """Keep the connection up."""
        with suppress(ConnectionClosed):
            while True:
                await self._line.send(encode(Frame((0, 0, service, CONTROL), {"type": "ping"})))
                await asyncio.sleep(every)

    def _whole(self, frame: Frame) -> bytes | None:
        """The content that a frame completes; None while parts of it are missing."""
        count, n = _number(frame.headers.get("sum")), _number(frame.headers.get("seq"))
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
    """A connection for an app."""
    there = await api.endpoint()
    url, config = str(there.get("URL", "")), there.get("ClientConfig")
    [service] = parse_qs(urlsplit(url).query).get("service_id", ["0"])
    every = float(_number(config.get("PingInterval") if isinstance(config, dict) else 0)) or _PING
    async with line_to("Feishu", url) as socket:
        line = Line(socket)
        async with beside("the pings of Feishu", lambda: line.ping(_number(service), every)):
            yield line


def _number(value: Any) -> int:
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < _LONGEST else 0


_LONGEST = 10
"""Digits of a number that a frame or an address names."""
