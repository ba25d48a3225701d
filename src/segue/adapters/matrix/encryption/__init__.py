"""Encrypted rooms: an extra, whose libraries are imported once a room needs them."""

import asyncio
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol

from segue.adapters.matrix.homeserver import Homeserver, Json
from segue.core.contracts.lockers import Locker, NoLocker
from segue.core.values import Secret, Value
from segue.errors import SendNever


class Opens(Value, frozen=True):
    """Secrets of an account, beside its token, that a device needs to be vouched for."""

    recovery: Secret = Secret("")
    """The recovery key or phrase of keys that another client made."""
    password: Secret = Secret("")
    """For homeservers that ask for it."""


class Encryption(Protocol):
    """The device of an account, as far as encryption goes."""

    async def begin(self) -> str:
        """Let the homeserver know the device's keys, and vouch for it; returns what is in the way of the latter."""
        ...

    async def heed(self, batch: Json) -> list[tuple[str, str]]:
        """Take what came for the device alone; returns the keys that came, each by its room and session."""
        ...

    def doubt(self) -> None:
        """Ask for everybody's devices again: what changed meanwhile was told to another process."""
        ...

    async def sealed(self, room: str, users: list[str], rotation: Json, content: Json) -> Json:
        """A message as the devices of these users can read it, and nobody else."""
        ...

    async def opened(self, room: str, raw: Json) -> Json | None:
        """An event in the clear; None if its key isn't there; raises `Invalid` if it is no message of its sender's."""
        ...

    async def closed_file(self, content: bytes) -> tuple[bytes, Json]:
        """The bytes of a file that is to be put into the media store, and what opens them."""
        ...

    async def opened_file(self, content: bytes, key: Json) -> bytes:
        """The bytes of a file; raises `NotFetched` if they aren't what the key is for."""
        ...


class Ciphers:
    """Encryption for one account, if its libraries are installed and its device has its keys."""

    def __init__(self, server: Homeserver, opens: Opens) -> None:
        self._server = server
        self._opens = opens
        self._locker: Locker = NoLocker()
        self._device: Encryption | None = None
        self.trouble = ""
        """What is in the way of encryption, in a sentence for the host."""

    def remember(self, locker: Locker) -> None:
        """Take the locker that the keys are in."""
        self._locker, self._device = locker, None

    async def begin(self) -> None:
        """Make the device ready."""
        self.trouble = ""
        device = await self.device()
        if device is not None:
            try:
                self.trouble = await device.begin()
            except SendNever as error:
                self._device, self.trouble = None, str(error)

    async def device(self) -> Encryption | None:
        """The account's device; None if it can't encrypt."""
        if self._device is None and not self.trouble and is_installed():
            # Beside everything else: importing them takes a while.
            module = await asyncio.to_thread(import_module, "segue.adapters.matrix.encryption.device")
            self._device = module.Device(self._server, self._opens, self._locker)
        return self._device


def is_installed() -> bool:
    """Whether the libraries are there."""
    return all(find_spec(name) for name in ("nio", "vodozemac"))
