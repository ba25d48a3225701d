"""A window on the gateway over the socket in the data folder."""

from __future__ import annotations

import getpass
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from segue.cli.gateway import SOCKET
from segue.errors import SegueError
from segue.runtime.files import is_kept
from segue.runtime.server.listeners import is_served
from segue.runtime.windows.sign_in import token_in

_LARGEST = 64 * 1024 * 1024


class NoGateway(SegueError):
    """No gateway serves this data folder."""


class Client:
    """This user's terminal window."""

    def __init__(self, socket: ClientConnection, folder: Path) -> None:
        self._socket = socket
        self._folder = folder

    async def say(self, text: str, id: str = "") -> str:
        """Say something; returns the id that it is acknowledged by. The same id again is the same message."""
        id = id or uuid4().hex
        await self._send({"say": text, "id": id})
        return id

    async def hand_off(self, session: str, destination: str, *, yes: bool) -> None:
        """Hand a session off; what comes of it is shown in frames."""
        await self._send({"handoff": destination, "session": session, "yes": yes})

    async def resume(self, session: str) -> None:
        """Turn to another session."""
        await self._send({"resume": session})

    async def ask(self, what: str) -> None:
        """Ask for a list: `commands`, or `list` for the sessions; or for a way out with `invite`."""
        await self._socket.send(json.dumps({what: True}))

    async def frames(self) -> AsyncIterator[dict[str, Any]]:
        """What the gateway shows, until it goes."""
        try:
            async for text in self._socket:
                yield self._with_files(json.loads(text))
        except ConnectionClosed:
            return

    def kept(self, files: Sequence[dict[str, str]]) -> list[str]:
        """A line for each file: where it is, if that is the data folder."""
        there = [self._folder / file["where"] if is_kept(file["where"]) else "" for file in files]
        return [f"{file['name']}: {path}" if path else file["name"] for file, path in zip(files, there, strict=True)]

    def _with_files(self, frame: dict[str, Any]) -> dict[str, Any]:
        """A frame whose notice says where its files are."""
        if frame.get("files"):
            frame["notice"] = "\n".join([frame["notice"], *self.kept(frame["files"])])
        return frame

    async def _send(self, frame: dict[str, str | bool]) -> None:
        try:
            await self._socket.send(json.dumps(frame))
        except ConnectionClosed as error:
            raise NoGateway("The gateway has gone. Start it again with `segue serve`.") from error


@asynccontextmanager
async def connected(folder: Path, chat: str = "") -> AsyncIterator[Client]:
    """A window on the gateway of a data folder, on this user's lane or on one of its own."""
    headers = {"Authorization": f"Bearer {token_in(folder)}", "X-Segue-User": getpass.getuser()}
    if chat:
        headers["X-Segue-Chat"] = chat
    try:
        socket = await unix_connect(
            str(folder / SOCKET), "ws://localhost/live", additional_headers=headers, max_size=_LARGEST
        )
    except (OSError, InvalidHandshake) as error:
        raise _nobody(folder) from error
    async with socket:
        yield Client(socket, folder)


async def ask(folder: Path, method: str, path: str) -> httpx2.Response:
    """Call the gateway of a data folder, as whoever may read that folder."""
    if not is_served(folder / SOCKET):
        raise _nobody(folder)
    headers = {"Authorization": f"Bearer {token_in(folder)}"}
    # A socket in a folder of one's own: no certificate is shown, and none of the authorities need be read.
    transport = httpx2.AsyncHTTPTransport(uds=str(folder / SOCKET), verify=False)
    try:
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", trust_env=False) as client:
            return await client.request(method, path, headers=headers)
    except httpx2.TransportError as error:
        raise _nobody(folder) from error


def _nobody(folder: Path) -> NoGateway:
    return NoGateway(f"No gateway answers in {folder}. Start one with `segue serve`.")
