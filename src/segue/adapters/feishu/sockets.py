"""The long connection: opened at an address that Feishu gives for one, kept up by pings, acknowledged part by part."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

from msgspec.structs import replace

from segue.adapters.feishu.api import Api
from segue.adapters.feishu.frames import CONTROL, DATA, Frame, decode, encode
from segue.adapters.shared.background import beside
from segue.adapters.shared.sockets import Socket, broke, line_to
from segue.errors import Disconnected, Invalid

_PING = 120.0
"""Seconds between two pings, unless Feishu says otherwise."""
_HALVES = 100
"""Deliveries of which not all parts are there yet."""


class Line:
    """One connection, over which Feishu tells what happens."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self._halves: dict[str, dict[int, bytes]] = {}

    async def told(self) -> AsyncIterator[tuple[Frame, bytes]]:
        """Everything that is told, until Feishu hangs up: the frame that completes it, and the whole of it."""
        async for raw in self._socket.told():
            try:
                frame = decode(raw if isinstance(raw, bytes) else raw.encode())
            except Invalid as error:
                raise broke("Feishu", error) from error
            if frame.method == DATA and (whole := self._whole(frame)) is not None:
                yield frame, whole

    async def acknowledge(self, frame: Frame) -> None:
        """Let Feishu forget what came with a frame."""
        await self._socket.say(encode(replace(frame, payload=b'{"code":200}')))

    async def ping(self, service: int, every: float) -> None:
        """Keep the connection up."""
        with suppress(Disconnected):
            while True:
                await self._socket.say(encode(Frame((0, 0, service, CONTROL), {"type": "ping"})))
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
