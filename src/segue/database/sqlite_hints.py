"""Hints between the processes that share one SQLite file: a datagram to each of them, through a folder of sockets.

The folder lies beside the database, where every process that can open the one finds the other, whatever its
environment. Where sockets can't live there (the path is too long for one, or the file system has none) it lies in the
temporary folder. A hint may get lost; a process that hears none still finds its work by polling.
"""

import asyncio
import contextlib
import hashlib
import logging
import os
import secrets
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from segue.database.hints import Hints

_log = logging.getLogger(__name__)
_LARGEST = 65536
_MOST = 256  # in one go, so that a flood of hints leaves the event loop its other work


class Sockets(Hints):
    """One process's socket among those of the others."""

    def __init__(self, folder: Path, own: str, heard: socket.socket) -> None:
        super().__init__()
        self._folder = folder
        self._own = own
        self._socket = heard
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(heard, self._receive)

    @classmethod
    def open(cls, database: Path) -> Hints:
        """Join the processes that share this file; if that can't be, hints stay in this process."""
        problem: Exception | None = None
        if hasattr(socket, "AF_UNIX") and hasattr(os, "geteuid"):
            for folder in _folders(database):
                try:
                    return cls._join(folder)
                except OSError as error:
                    problem = error
        _log.warning(
            "Other processes on %s are noticed by polling only: %s", database, problem or "no Unix sockets here"
        )
        return Hints()

    @classmethod
    def _join(cls, folder: Path) -> Self:
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise PermissionError(f"{folder} isn't a folder that only we can enter")
        own = secrets.token_hex(6)
        unready = folder / f".{own}"
        heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            heard.settimeout(0)
            # A file is there a moment before its socket answers; under its real name it always answers.
            heard.bind(str(unready))
            unready.rename(folder / own)
        except OSError:
            heard.close()
            raise
        return cls(folder, own, heard)

    def send(self, topic: str) -> None:
        """Tell this process and every other one on this file."""
        self.tell(topic)
        if self._socket.fileno() < 0:  # closed
            return
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 - three times as fast, and every hint does it
            for name in names:
                if name != self._own and not name.startswith("."):
                    self._send(topic, self._folder / name)
        except FileNotFoundError:
            return
        except OSError as error:
            # Such as no free file descriptor. The other processes find their work by polling.
            _log.warning("other processes on this database can't be woken now: %s", error)

    def _send(self, topic: str, path: Path) -> None:
        try:
            self._socket.sendto(topic.encode(), str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)  # its process died
        except (BlockingIOError, FileNotFoundError):
            """It has enough to wake up for, or it left."""

    async def close(self) -> None:
        if not self._loop.is_closed():
            self._loop.remove_reader(self._socket)
        self._socket.close()
        # The folder stays: whoever is joining now has seen it. A socket that stays is deleted by the next sender.
        with contextlib.suppress(OSError):
            (self._folder / self._own).unlink()

    def _receive(self) -> None:
        topics = dict[str, None]()
        with contextlib.suppress(BlockingIOError):
            for _ in range(_MOST):
                topics[self._socket.recv(_LARGEST).decode(errors="replace")] = None
        for topic in topics:
            self.tell(topic)


def _folders(database: Path) -> Iterator[Path]:
    real = database.resolve()
    yield real.with_name(real.name + "-wake")
    name = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    yield Path(tempfile.gettempdir()) / f"segue-{os.geteuid()}-{name}"
