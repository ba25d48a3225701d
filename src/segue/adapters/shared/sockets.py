"""WebSockets to a platform."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from segue.adapters.shared.trust import trust
from segue.errors import Disconnected

_LARGEST = 16 * 1024 * 1024
_OPENING = 10.0


class Socket:
    """A WebSocket to a platform. Every call raises `Disconnected` once the connection is broken."""

    def __init__(self, who: str, line: ClientConnection) -> None:
        self._who = who
        self._line = line

    async def told(self) -> AsyncIterator[str | bytes]:
        """Yield every message until the platform closes the connection."""
        try:
            async for raw in self._line:
                yield raw
        except ConnectionClosed as error:
            raise broke(self._who, error) from error
        raise Disconnected(f"{self._who} closed the line.")

    async def say(self, what: str | bytes) -> None:
        """Send a message."""
        try:
            await self._line.send(what)
        except ConnectionClosed as error:
            raise broke(self._who, error) from error


@asynccontextmanager
async def line_to(who: str, url: str) -> AsyncIterator[Socket]:
    """Open a WebSocket for the block; raise `Disconnected` if it fails."""
    tls = trust() if url.startswith("wss:") else None
    try:
        line = await connect(url, ssl=tls, max_size=_LARGEST, open_timeout=_OPENING, close_timeout=1)
    except (InvalidHandshake, InvalidURI, OSError, TimeoutError) as error:
        raise broke(who, error) from error
    async with line:
        yield Socket(who, line)


def broke(who: str, error: Exception) -> Disconnected:
    """Return the error for a broken connection.

    The platform's text is left out: it may contain an address with a secret in it.
    """
    return Disconnected(f"the line to {who} broke ({type(error).__name__})")
