"""The wire between us and PostgreSQL, which can be cut or frozen at a chosen word."""

import asyncio
import contextlib
import enum
from collections import Counter
from collections.abc import AsyncIterator
from typing import Self
from urllib.parse import parse_qs, urlsplit


class Fault(enum.Enum):
    """What happens to what we say."""

    CUT_BEFORE = "the server never hears it"
    CUT_AFTER = "the server does it, and we never hear that it did"
    FREEZE = "neither hears anything of the other any more"


class Wire:
    """Relays bytes; when we say a certain word it fails, so many times."""

    def __init__(self, dsn: str) -> None:
        parts = urlsplit(dsn)
        query = parse_qs(parts.query)
        self._socket = f"{query['host'][0]}/.s.PGSQL.{query['port'][0]}"
        self._database = parts.path
        self._word = b""
        self._fault = Fault.CUT_BEFORE
        self.left = 0
        self._trips: Counter[asyncio.StreamWriter] = Counter()
        self.failing = asyncio.Event()
        self.dsn = ""
        self._over = asyncio.Event()
        self._ends: set[asyncio.StreamWriter] = set()

    @property
    def trips(self) -> int:
        """Times that we said something and waited for the answer, on the connection on which we did so most."""
        return max(self._trips.values(), default=0)

    def fail(self, word: str, fault: Fault, times: int = 1) -> None:
        self._word, self._fault, self.left = word.encode(), fault, times

    @classmethod
    @contextlib.asynccontextmanager
    async def to(cls, dsn: str) -> AsyncIterator[Self]:
        wire = cls(dsn)
        server = await asyncio.start_server(wire._accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        wire.dsn = f"postgresql://segue:hunter2@127.0.0.1:{port}{wire._database}?sslmode=disable"
        try:
            yield wire
        finally:
            server.close()
            wire._over.set()
            for end in wire._ends:
                end.transport.abort()

    async def _accept(self, ours: asyncio.StreamReader, to_us: asyncio.StreamWriter) -> None:
        self._ends.add(to_us)
        theirs, to_them = await asyncio.open_unix_connection(self._socket)
        answered = asyncio.Event()
        back = asyncio.create_task(_relay(theirs, to_us, answered))
        try:
            while said := await _read(ours):
                self._trips[to_us] += answered.is_set()
                answered.clear()
                if self.left and self._word in said:
                    self.left -= 1
                    self.failing.set()
                    back.cancel()
                    await asyncio.wait({back})
                    await self._misbehave(said, theirs, to_them)
                    return
                to_them.write(said)
        finally:
            back.cancel()
            to_us.transport.abort()
            to_them.transport.abort()
            self._ends.discard(to_us)

    async def _misbehave(self, said: bytes, theirs: asyncio.StreamReader, to_them: asyncio.StreamWriter) -> None:
        match self._fault:
            case Fault.CUT_BEFORE:
                return
            case Fault.CUT_AFTER:
                to_them.write(said)
                await _read(theirs)
            case Fault.FREEZE:
                await self._over.wait()


async def _relay(source: asyncio.StreamReader, sink: asyncio.StreamWriter, said_something: asyncio.Event) -> None:
    while said := await _read(source):
        said_something.set()
        sink.write(said)
    sink.close()


async def _read(source: asyncio.StreamReader) -> bytes:
    """What comes next, nothing if the other side is gone in whichever way."""
    try:
        return await source.read(65536)
    except ConnectionError:
        return b""
