"""Websockets to a platform."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from segue.adapters.shared.trust import trust
from segue.errors import Disconnected

_LARGEST = 16 * 1024 * 1024
_OPENING = 10.0


class Socket:
    """A line to a platform: whatever is done with it raises `Disconnected` once it is broken."""

    def __init__(self, who: str, line: ClientConnection) -> None:
        self._who = who
        self._line = line

    async def told(self) -> AsyncIterator[str | bytes]:
        """Everything that is told, until the other side hangs up."""
        try:
            async for raw in self._line:
                yield raw
        except ConnectionClosed as error:
            raise broke(self._who, error) from error
        raise Disconnected(f"{self._who} closed the line.")

    async def say(self, what: str | bytes) -> None:
        """Send something."""
        try:
            await self._line.send(what)
        except ConnectionClosed as error:
            raise broke(self._who, error) from error


@asynccontextmanager
async def line_to(who: str, url: str) -> AsyncIterator[Socket]:
    """A line that is open until the block ends; raises `Disconnected` if it can't be opened."""
    tls = trust() if url.startswith("wss:") else None
    try:
        line = await connect(url, ssl=tls, max_size=_LARGEST, open_timeout=_OPENING, close_timeout=1)
    except (InvalidHandshake, InvalidURI, OSError, TimeoutError) as error:
        raise broke(who, error) from error
    async with line:
        yield Socket(who, line)


def broke(who: str, error: Exception) -> Disconnected:
    """The error of a line that broke; what the other says may hold an address with a secret in it."""
    return Disconnected(f"the line to {who} broke ({type(error).__name__})")
