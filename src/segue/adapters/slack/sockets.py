"""Sockets of Socket Mode: each is opened at an address that Slack gives for one connection."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from segue.adapters.shared.sockets import broke, line_to
from segue.adapters.shared.webhooks import from_json
from segue.adapters.slack.api import Api, Json
from segue.errors import Disconnected


class Socket:
    """One connection, over which Slack tells what happens."""

    def __init__(self, line: ClientConnection) -> None:
        self._line = line

    async def envelopes(self) -> AsyncIterator[Json]:
        """Everything that is told, until Slack asks for another socket; raises `Disconnected` when the line breaks."""
        try:
            async for raw in self._line:
                told = from_json(raw)
                envelope = told if isinstance(told, dict) else {"type": "unknown", "payload": told}
                if envelope.get("type") != "disconnect":
                    yield envelope
                elif envelope.get("reason") == "link_disabled":
                    raise Disconnected("Socket Mode is off. Turn it on in the app's settings.")
                else:
                    return
        except ConnectionClosed as error:
            raise broke("Slack", error) from error
        raise Disconnected("Slack closed the line.")

    async def acknowledge(self, envelope: Json) -> None:
        """Let Slack forget an envelope."""
        if "envelope_id" in envelope:
            try:
                await self._line.send(json.dumps({"envelope_id": envelope["envelope_id"]}))
            except ConnectionClosed as error:
                raise broke("Slack", error) from error


@asynccontextmanager
async def opened(app: Api) -> AsyncIterator[Socket]:
    """A socket for the app whose token this is."""
    url = str((await app.call("apps.connections.open")).get("url", ""))
    async with line_to("Slack", url) as line:
        yield Socket(line)
