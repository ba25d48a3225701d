"""What goes out to a room: in the clear, or as the devices of those who are in it can read it.

Law: nothing but the line that says so goes in the clear into a room that ever was encrypted.
"""

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from segue.adapters.matrix.content import attached
from segue.adapters.matrix.encryption import Ciphers, is_installed
from segue.adapters.matrix.homeserver import Homeserver, Json
from segue.adapters.matrix.rooms import Rooms
from segue.core.messages import File
from segue.errors import SendNever

if TYPE_CHECKING:
    from segue.adapters.matrix.encryption.device import Device

ENCRYPTED = "I can't read encrypted rooms. Invite me to a room without encryption, and we can talk there."
INSTALL = (
    "somebody talks to it in an encrypted room, which it can't read: run `segue install matrix`, and start it again."
)
_FRESH = 5.0
"""Seconds for which a process that doesn't follow the sync believes what it knows of rooms and devices."""


class Outgoing:
    """Writes for one account."""

    def __init__(self, server: Homeserver, rooms: Rooms, ciphers: Ciphers) -> None:
        self._server = server
        self._rooms = rooms
        self._ciphers = ciphers
        self._follows = False
        self._looked = 0.0
        self._doubts = False
        """Whether devices may have changed since they were asked for."""

    @contextmanager
    def following(self) -> Iterator[None]:
        """Inside, this process is told what changes."""
        self._follows = True
        try:
            yield
        finally:
            self._follows = False

    def look(self) -> None:
        """Look everything up again, unless changes are told."""
        if not self._follows and time.monotonic() - self._looked > _FRESH:
            self._looked = time.monotonic()
            self._rooms.forget()
            self._doubts = True

    async def put(self, room: str, key: str, content: Json) -> str:
        """Write a message; the same key gives the same one."""
        known = await self._rooms.get(room)
        if known.encryption is not None:
            device = await self._device()
            if self._doubts:
                device.doubt()
                self._doubts = False
            content = await device.sealed(room, list(known.names), known.encryption, content)
        return await self._server.send(room, transaction(key), content)

    async def attached(self, room: str, file: File, content: bytes, thread: str, text: str) -> Json:
        """The message of a file, which is put into the media store."""
        if not (await self._rooms.get(room)).encrypted:
            return attached(file, await self._server.upload(file.name, file.media, content), thread, text)
        sealed, opens = await (await self._device()).closed_file(content)
        where = await self._server.upload("file", "application/octet-stream", sealed)
        return attached(file, {**opens, "url": where}, thread, text)

    async def _device(self) -> "Device":
        device = await self._ciphers.device()
        if device is None:
            raise SendNever(ENCRYPTED if is_installed() else f"The room is encrypted: {INSTALL}")
        return device


def transaction(key: str) -> str:
    """A transaction id; keys may be longer than one."""
    return hashlib.sha256(key.encode()).hexdigest()
