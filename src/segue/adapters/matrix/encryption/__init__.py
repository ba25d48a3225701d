"""Encrypted rooms: an extra, whose libraries are imported once a room needs them."""

import asyncio
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from segue.adapters.matrix.homeserver import Homeserver
from segue.core.contracts.lockers import Locker, NoLocker
from segue.core.values import Secret, Value
from segue.errors import SendNever

if TYPE_CHECKING:
    from segue.adapters.matrix.encryption.device import Device


class Opens(Value, frozen=True):
    """Secrets of an account, beside its token, that a device needs to be vouched for."""

    recovery: Secret = Secret("")
    """The recovery key or phrase of keys that another client made."""
    password: Secret = Secret("")
    """For homeservers that ask for it."""


class Ciphers:
    """Encryption for one account, if its libraries are installed and its device has its keys."""

    def __init__(self, server: Homeserver, opens: Opens) -> None:
        self._server = server
        self._opens = opens
        self._locker: Locker = NoLocker()
        self._device: Device | None = None
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

    async def device(self) -> "Device | None":
        """The account's device; None if it can't encrypt."""
        if self._device is None and not self.trouble and is_installed():
            # Beside everything else: importing them takes a while.
            module = await asyncio.to_thread(import_module, "segue.adapters.matrix.encryption.device")
            self._device = module.Device(self._server, self._opens, self._locker)
        return self._device


def is_installed() -> bool:
    """Whether the libraries are there."""
    return all(find_spec(name) for name in ("nio", "vodozemac"))
