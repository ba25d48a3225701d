"""Sockets of Socket Mode: each is opened at an address that Slack gives for one connection."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from segue.adapters.shared.trust import trust
from segue.adapters.shared.webhooks import from_json
from segue.adapters.slack.api import Api, Json
from segue.errors import Disconnected

_LARGEST = 16 * 1024 * 1024
_OPENING = 10.0


class Socket:
    """One connection, over which Slack tells what happens."""

    def __init__(self, line: ClientConnection) -> None:
        self._line = line

    async def envelopes(self) -> AsyncIterator[Json]:
        """Everything that is told, until Slack hangs up."""
        async for raw in self._line:
            told = from_json(raw)
            yield told if isinstance(told, dict) else {"type": "unknown", "payload": told}

    async def acknowledge(self, envelope: Json) -> None:
        """Let Slack forget an envelope."""
        if "envelope_id" in envelope:
            await self._line.send(json.dumps({"envelope_id": envelope["envelope_id"]}))


@asynccontextmanager
async def opened(app: Api) -> AsyncIterator[Socket]:
    """A socket for the app whose token this is; raises `Disconnected` when the line breaks."""
    url = str((await app.call("apps.connections.open")).get("url", ""))
    tls = trust() if url.startswith("wss:") else None
    try:
        async with connect(url, ssl=tls, max_size=_LARGEST, open_timeout=_OPENING, close_timeout=1) as line:
            yield Socket(line)
    except (ConnectionClosed, InvalidHandshake, InvalidURI, OSError, TimeoutError) as error:
        raise Disconnected(f"the line to Slack broke ({type(error).__name__})") from error
