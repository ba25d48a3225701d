"""Websockets to a platform."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidURI

from segue.adapters.shared.trust import trust
from segue.errors import Disconnected

_LARGEST = 16 * 1024 * 1024
_OPENING = 10.0


@asynccontextmanager
async def line_to(who: str, url: str) -> AsyncIterator[ClientConnection]:
    """A line that is open until the block ends; raises `Disconnected` if it can't be opened."""
    tls = trust() if url.startswith("wss:") else None
    try:
        line = await connect(url, ssl=tls, max_size=_LARGEST, open_timeout=_OPENING, close_timeout=1)
    except (InvalidHandshake, InvalidURI, OSError, TimeoutError) as error:
        raise broke(who, error) from error
    async with line:
        yield line


def broke(who: str, error: Exception) -> Disconnected:
    """The error of a line that broke; what the other says may hold an address with a secret in it."""
    return Disconnected(f"the line to {who} broke ({type(error).__name__})")
