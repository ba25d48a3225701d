"""Sockets of Socket Mode: each is opened at an address that Slack gives for one connection."""

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

from segue.adapters.shared.sockets import Socket, line_to
from segue.adapters.shared.webhooks import from_json
from segue.adapters.slack.api import Api, Json
from segue.errors import Disconnected


async def opened(app: Api) -> AbstractAsyncContextManager[Socket]:
    """A socket for the app whose token this is."""
    return line_to("Slack", str((await app.call("apps.connections.open")).get("url", "")))


async def envelopes(socket: Socket) -> AsyncIterator[Json]:
    """Everything that is told, until Slack asks for another socket; raises `Disconnected` when the line breaks."""
    async for raw in socket.told():
        told = from_json(raw)
        envelope = told if isinstance(told, dict) else {"type": "unknown", "payload": told}
        if envelope.get("type") != "disconnect":
            yield envelope
        elif envelope.get("reason") == "link_disabled":
            raise Disconnected("Socket Mode is off. Turn it on in the app's settings.")
        else:
            return


async def acknowledge(socket: Socket, envelope: Json) -> None:
    """Let Slack forget an envelope."""
    if "envelope_id" in envelope:
        await socket.say(json.dumps({"envelope_id": envelope["envelope_id"]}))
