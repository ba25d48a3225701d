"""What goes to rooms and comes from them: in the clear, or as the devices of those who are there can read it.

Law: nothing but the line that says so goes in the clear into a room that ever was encrypted.
"""

import asyncio
import hashlib
import time
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from segue.adapters.matrix.content import attached
from segue.adapters.matrix.homeserver import Homeserver, Json
from segue.adapters.matrix.rooms import Rooms
from segue.adapters.shared.decoding import inside
from segue.adapters.shared.drawers import Kept
from segue.core.contracts.lockers import Locker, NoLocker
from segue.core.messages import File
from segue.core.values import Moment, Value
from segue.errors import SendNever

if TYPE_CHECKING:
    from segue.adapters.matrix.encryption.device import Device

ENCRYPTED = "I can't read encrypted rooms. Invite me to a room without encryption, and we can talk there."
INSTALL = (
    "somebody talks to it in an encrypted room, which it can't read: run `segue install matrix`, and start it again."
)
_FRESH = 5.0
"""Seconds for which a process that doesn't follow the sync believes what it knows of rooms and devices."""
_PATIENCE = 10.0
"""Seconds that a key may take without a word about it: it comes by another way than its message."""
_LASTS = 7 * 24 * 3600.0
_MOST = 100
"""Messages of one room that wait for their keys."""


class Ciphers:
    """Writes for one account, which can encrypt if the libraries are installed and its device has its keys."""

    def __init__(self, server: Homeserver, rooms: Rooms) -> None:
        self._server = server
        self._rooms = rooms
        self._locker: Locker = NoLocker()
        self._device: Device | None = None
        self.follows = False
        """Whether changes of rooms and devices are told to this process."""
        self._looked = 0.0
        self.trouble = ""
        """What is in the way of encryption, in a sentence for the host."""

    def remember(self, locker: Locker) -> None:
        self._locker, self._device = locker, None

    async def device(self) -> "Device | None":
        """The account's device; None if it can't encrypt."""
        if self._device is None and not self.trouble and is_installed():
            _, id = await self._server.whoami()
            if not id:
                self.trouble = "its access token is no device's: log in with the password to get one that is."
                return None
            # Beside everything else: importing the libraries takes a while.
            module = await asyncio.to_thread(import_module, "segue.adapters.matrix.encryption.device")
            self._device = module.Device(self._server, module.Keyring(self._locker, id, self._server.token))
        return self._device

    async def begin(self) -> None:
        self._device, self.trouble = None, ""
        if device := await self.device():
            try:
                self.trouble = await device.begin()
            except SendNever as error:
                self._device, self.trouble = None, str(error)

    def look(self) -> None:
        """Look everything up again, unless changes are told."""
        if not self.follows and time.monotonic() - self._looked > _FRESH:
            self._looked = time.monotonic()
            self._rooms.forget()
            if self._device:
                self._device.forget()

    async def put(self, room: str, key: str, content: Json) -> str:
        """Write a message; the same key gives the same one."""
        known = await self._rooms.get(room)
        if known.encryption is not None:
            content = await (await self._needed()).sealed(room, list(known.names), known.encryption, content)
        # Keys may be longer than a transaction's id.
        return await self._server.send(room, hashlib.sha256(key.encode()).hexdigest(), content)

    async def attached(self, room: str, file: File, content: bytes, thread: str, text: str) -> Json:
        """The message of a file, which is put into the media store."""
        if (await self._rooms.get(room)).encryption is None:
            return attached(file, await self._server.upload(file.name, file.media, content), thread, text)
        sealed, opens = await (await self._needed()).closed_file(content)
        where = await self._server.upload("file", "application/octet-stream", sealed)
        return attached(file, {**opens, "url": where}, thread, text)

    async def _needed(self) -> "Device":
        if (device := await self.device()) is None:
            raise SendNever(ENCRYPTED if is_installed() else f"The room is encrypted: {INSTALL}")
        return device


class UnreadMessage(Value, frozen=True):
    """An encrypted message whose key isn't there yet."""

    room: str
    session: str
    event: Json
    since: Moment


class Unread:
    """The messages of one account that wait for their keys, for a week."""

    def __init__(self) -> None:
        self.kept = Kept("unread/", UnreadMessage)

    async def recall(self) -> None:
        await self.kept.recall()
        await self.kept.drop(*(name for name, one in self.kept.values.items() if one.since < time.time() - _LASTS))

    async def wait(self, room: str, event: Json) -> None:
        name, there = f"{room}/{event['event_id']}", [one for one in self.kept.values.values() if one.room == room]
        if name not in self.kept.values and len(there) < _MOST:
            session = str(inside(event, "content").get("session_id"))
            await self.kept.put(name, UnreadMessage(room, session, event, time.time()))

    def of(self, room: str, session: str) -> list[tuple[str, Json]]:
        """The messages of a room that a key opens, by the names under which they wait, the oldest first."""
        waiting = self.kept.values.items()
        found = [(name, one.event) for name, one in waiting if (one.room, one.session) == (room, session)]
        return sorted(found, key=lambda named: int(named[1].get("origin_server_ts") or 0))

    @property
    def overdue(self) -> set[str]:
        """The rooms in which a message has waited for so long that people should know."""
        return {one.room for one in self.kept.values.values() if one.since < time.time() - _PATIENCE}

    @property
    def hurry(self) -> bool:
        return any(one.since >= time.time() - 2 * _PATIENCE for one in self.kept.values.values())


def is_installed() -> bool:
    return all(find_spec(name) for name in ("nio", "vodozemac"))
