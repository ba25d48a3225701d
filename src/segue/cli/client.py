"""A window on the gateway over the socket in the data folder."""

from __future__ import annotations

import getpass
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from segue.cli.running import SOCKET
from segue.errors import SegueError
from segue.runtime.door import token_in

_LARGEST = 64 * 1024 * 1024


class NoGateway(SegueError):
    """No gateway serves this data folder."""


class Client:
    """This user's terminal window."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def say(self, text: str) -> str:
        """Say something; returns the id that it is acknowledged by."""
        id = uuid4().hex
        try:
            await self._socket.send(json.dumps({"say": text, "id": id}))
        except ConnectionClosed as error:
            raise NoGateway("The gateway has gone. Start it again with `segue serve`.") from error
        return id

    async def frames(self) -> AsyncIterator[dict[str, Any]]:
        """What the gateway shows, until it goes."""
        try:
            async for text in self._socket:
                yield json.loads(text)
        except ConnectionClosed:
            return


@asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[Client]:
    """A window on the gateway of a data folder."""
    headers = {"Authorization": f"Bearer {token_in(folder)}", "X-Segue-User": getpass.getuser()}
    try:
        socket = await unix_connect(
            str(folder / SOCKET), "ws://localhost/live", additional_headers=headers, max_size=_LARGEST
        )
    except (OSError, InvalidHandshake) as error:
        raise NoGateway(f"No gateway answers in {folder}. Start one with `segue serve`.") from error
    async with socket:
        yield Client(socket)
