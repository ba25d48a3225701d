"""The people and the platform of a gateway over HTTP, as light as they can be: what they cost isn't Segue's."""

import asyncio
import hashlib
import hmac
import itertools
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

SECRET, ACCOUNT = "bench", "bench"
_numbers = itertools.count()


class Call(msgspec.Struct):
    """What the gateway sends to its platform, as far as it matters here."""

    kind: str
    key: str = ""
    answers: tuple[str, ...] = ()


@dataclass
class Measured:
    """What came of some messages."""

    seconds: float
    accepted: list[float] = field(default_factory=list)
    """Seconds from a message's call to its 202."""
    answered: list[float] = field(default_factory=list)
    """Seconds from a message's call to its answer."""

    @property
    def rate(self) -> float:
        return len(self.answered) / self.seconds


def quantile(taken: Sequence[float], share: float) -> float:
    """The time within which this share of them was done."""
    return statistics.quantiles(taken, n=100, method="inclusive")[round(share * 100) - 1]


class Platform(asyncio.Protocol):
    """One connection on which the gateway hands its answers over; they are known by what they answer."""

    def __init__(self, waiting: dict[str, "asyncio.Future[float]"]) -> None:
        self._waiting = waiting
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (found := _message(self._buffer)) is not None:
            _, body, self._buffer = found
            call = msgspec.json.decode(body, type=Call)
            told = b'{"id":"%b"}' % call.key.encode()
            self._transport.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(told), told)
            )
            for message in call.answers if call.kind == "message" else ():
                if (waits := self._waiting.pop(message, None)) and not waits.done():
                    waits.set_result(time.perf_counter())


class People:
    """Senders on a kept connection each, who say the next thing when the last was answered."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._waiting: dict[str, asyncio.Future[float]] = {}

    async def platform(self) -> asyncio.Server:
        """Where the gateway's answers go."""
        return await asyncio.get_running_loop().create_server(lambda: Platform(self._waiting), "127.0.0.1", 0)

    async def talk(self, at_once: int, messages: int, chat: str = "chat") -> Measured:
        """So many messages, said by so many people at once; a single one has the chat of that name."""
        taken = Measured(0.0)
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for n in range(at_once):
                group.create_task(self._talk(f"{chat}-{n}" if n else chat, messages // at_once, taken))
        taken.seconds = time.perf_counter() - began
        return taken

    async def _talk(self, chat: str, messages: int, taken: Measured) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            for _ in range(messages):
                message = f"message-{next(_numbers)}"
                waits = self._waiting[message] = asyncio.get_running_loop().create_future()
                began = time.perf_counter()
                writer.write(_posted(chat, message))
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(_length(head))
                if b" 202 " not in head[:20]:
                    raise RuntimeError(f"the gateway said {head.splitlines()[0].decode()}")
                taken.accepted.append(time.perf_counter() - began)
                taken.answered.append(await asyncio.wait_for(waits, 60) - began)
        finally:
            writer.close()


def _posted(chat: str, message: str) -> bytes:
    said = {"id": message, "chat": chat, "chat_kind": "dm", "person": {"id": chat, "name": chat}, "text": "hello"}
    body, at = msgspec.json.encode(said), str(int(time.time()))
    proof = hmac.new(SECRET.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return (
        f"POST /in/http/{ACCOUNT} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        f"x-segue-timestamp: {at}\r\nx-segue-signature: v1={proof}\r\ncontent-length: {len(body)}\r\n\r\n"
    ).encode() + body


def _message(buffer: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Head, body and what follows, once the whole of a message is there."""
    head, end, rest = buffer.partition(b"\r\n\r\n")
    if not end or len(rest) < (length := _length(head)):
        return None
    return head, rest[:length], rest[length:]


def _length(head: bytes) -> int:
    lines = head.lower().split(b"\r\n")
    return next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
