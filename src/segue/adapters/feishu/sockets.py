"""The long connection: opened at an address that Feishu gives for one, kept up by pings, acknowledged part by part.

A frame on it is written in protobuf's wire format:

    Frame:  1 SeqID, 2 LogID, 3 service, 4 method, 5 headers (1 key, 2 value), 6 payload_encoding, 7 payload_type,
            8 payload, 9 LogIDNew

A field is a number with its kind, then a varint (kind 0) or a length and so many bytes (kind 2); no other kind is used.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qsl, urlsplit

from msgspec.structs import replace

from segue.adapters.feishu.api import Api
from segue.adapters.shared.background import beside
from segue.adapters.shared.decoding import inside, text_in
from segue.adapters.shared.lookups import Recent
from segue.adapters.shared.sockets import Socket, line_to
from segue.core.values import Value
from segue.errors import Disconnected

CONTROL, DATA = 0, 1
"""Methods of frames: about the connection, or with something in it."""
_METHOD, _HEADER, _PAYLOAD = 4, 5, 8
_VARINT, _BYTES = 0, 2
_LONGEST_VARINT, _LONGEST_NUMBER = 10, 10
"""Bytes of a varint, and digits of a number in a text."""
_PING = 120.0
"""Seconds between two pings, unless Feishu says otherwise."""
_HALVES = 100
"""Deliveries of which not all parts are there yet."""
Field = tuple[int, int | bytes]


class Frame(Value, frozen=True):
    """One frame."""

    method: int
    headers: Mapping[str, str] = {}
    payload: bytes = b""
    rest: tuple[Field, ...] = ()
    """The other fields, which are sent back as they came."""


@asynccontextmanager
async def opened(api: Api) -> AsyncIterator[Socket]:
    """A connection for an app."""
    there = await api.endpoint()
    url, config = text_in(there, "URL"), inside(there, "ClientConfig")
    service = _number(dict(parse_qsl(urlsplit(url).query)).get("service_id"))
    every = float(_number(config.get("PingInterval"))) or _PING
    async with line_to("Feishu", url) as socket, beside("the pings of Feishu", lambda: _ping(socket, service, every)):
        yield socket


async def told(socket: Socket) -> AsyncIterator[tuple[Frame, bytes]]:
    """Everything that is told, until Feishu hangs up: the frame that completes it, and the whole of it."""
    halves = Recent[str, dict[int, bytes]](_HALVES)
    async for raw in socket.told():
        frame = decode(raw if isinstance(raw, bytes) else raw.encode())
        if frame.method != DATA:
            continue
        name, count, n = (frame.headers.get(key, "") for key in ("message_id", "sum", "seq"))
        parts = halves[name] = halves.get(name, {}) | {_number(n): frame.payload}
        if len(parts) >= _number(count):
            del halves[name]
            yield frame, b"".join(parts[n] for n in sorted(parts))


async def acknowledge(socket: Socket, frame: Frame) -> None:
    """Let Feishu forget what came with a frame."""
    await socket.say(encode(replace(frame, payload=b'{"code":200}')))


async def _ping(socket: Socket, service: int, every: float) -> None:
    with suppress(Disconnected):
        while True:
            await socket.say(encode(Frame(CONTROL, {"type": "ping"}, rest=((1, 0), (2, 0), (3, service)))))
            await asyncio.sleep(every)


def _number(value: object) -> int:
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < _LONGEST_NUMBER else 0


def encode(frame: Frame) -> bytes:
    headers = ((_HEADER, _written((1, key.encode()), (2, value.encode()))) for key, value in frame.headers.items())
    return _written(*frame.rest, (_METHOD, frame.method), *headers, (_PAYLOAD, frame.payload))


def decode(raw: bytes) -> Frame:
    """The frame that was sent; raises `Disconnected`."""
    fields = list(_fields(raw))
    method, payload = (dict(fields).get(n) for n in (_METHOD, _PAYLOAD))
    pairs = (dict(_fields(value)) for n, value in fields if n == _HEADER and isinstance(value, bytes))
    headers = {_text(pair.get(1)): _text(pair.get(2)) for pair in pairs}
    rest = tuple(field for field in fields if field[0] not in {_METHOD, _HEADER, _PAYLOAD})
    said = payload if isinstance(payload, bytes) else b""
    return Frame(method if isinstance(method, int) else CONTROL, headers, said, rest)


def _fields(raw: bytes) -> Iterator[Field]:
    at = 0
    while at < len(raw):
        tag, at = _varint_at(raw, at)
        value, at = _varint_at(raw, at)
        end = at + value if tag & 7 == _BYTES else at
        if tag & 7 not in {_VARINT, _BYTES} or end > len(raw):
            raise Disconnected("Feishu sent a frame that isn't whole. Segue may be older than what Feishu sends.")
        yield tag >> 3, raw[at:end] if tag & 7 == _BYTES else value
        at = end


def _varint_at(raw: bytes, at: int) -> tuple[int, int]:
    """The number at a place, and the place after it; one beyond the end, if it isn't whole."""
    value = 0
    for n, byte in enumerate(raw[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * n
        if not byte & 0x80:
            return value, at + n + 1
    return 0, len(raw) + 1


def _written(*fields: Field) -> bytes:
    out = b""
    for n, value in fields:
        kind, number, rest = (_VARINT, value, b"") if isinstance(value, int) else (_BYTES, len(value), value)
        out += _varint(n << 3 | kind) + _varint(number) + rest
    return out


def _varint(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + _varint(value >> 7)


def _text(value: int | bytes | None) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else ""
