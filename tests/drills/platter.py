"""A disk under SQLite that remembers all that was asked of it, in order, so that the power can be cut at any moment.

What was synced is there after a cut. Of the rest any part may be, sector by sector. A file's name is a fact of its
folder: it is there for sure once the folder was synced, as SQLite does with the first sync of a log that it made.
The shared memory beside the log isn't kept: SQLite makes it anew from the log.
"""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw

SECTOR = 512
_SHARES = (0.0, 0.1, 0.5, 0.9, 1.0)
"""How much of what wasn't synced a cut leaves behind."""
_numbers = itertools.count()


class Write(NamedTuple):
    """Bytes went into a file."""

    file: int
    at: int
    content: bytes


class Cut(NamedTuple):
    """A file was cut or stretched to a size."""

    file: int
    size: int


class Name(NamedTuple):
    """A name stands for another file than before, or for none."""

    name: str
    file: int | None


class Synced(NamedTuple):
    """A sync came back: what had been asked of the file before it began is there for sure."""

    file: int
    upto: int


class FolderSynced(NamedTuple):
    """A sync of the folder came back: the names that it had before are there for sure."""

    upto: int


class Told(NamedTuple):
    """Somebody outside was told something: from now on it must be true."""

    what: str
    of: str


Happened = Write | Cut | Name | Synced | FolderSynced | Told


class Recorder(apsw.VFS):
    """The real disk, with a record of all that happens."""

    def __init__(self) -> None:
        self.name = f"recorder{next(_numbers)}"
        self.record: list[Happened] = []
        self._files = itertools.count()
        self._named: dict[str, int] = {}
        super().__init__(self.name, "")

    def tell(self, what: str, of: str) -> None:
        """Somebody outside learns something."""
        self.record.append(Told(what, of))

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        if name is None:
            return apsw.VFSFile("", name, flags)
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        new = path not in self._named or not Path(path).exists()
        if new:
            self._named[path] = next(self._files)
            self.record.append(Name(Path(path).name, self._named[path]))
        # As SQLite does: whoever makes a log sees to its name, at its first sync.
        log = flags[0] & (apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL)
        return _File(self, name, flags, self._named[path], sees_to_its_name=bool(new and log))

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: FBT001, N802 - SQLite's name
        self._named.pop(filename, None)
        self.record.append(Name(Path(filename).name, None))
        upto = len(self.record)
        super().xDelete(filename, syncdir)
        if syncdir:
            self.record.append(FolderSynced(upto))

    def sync_folder(self) -> None:
        """Sync the folder, as somebody other than SQLite may."""
        self.record.append(FolderSynced(len(self.record)))


class _File(apsw.VFSFile):
    def __init__(
        self,
        disk: Recorder,
        name: str | apsw.URIFilename,
        flags: list[int],
        file: int,
        *,
        sees_to_its_name: bool,
    ) -> None:
        self._disk = disk
        self._file = file
        self._sees_to_its_name = sees_to_its_name
        super().__init__("", name, flags)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802 - SQLite's name
        self._disk.record.append(Write(self._file, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - SQLite's name
        self._disk.record.append(Cut(self._file, newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        upto = len(self._disk.record)
        super().xSync(flags)
        self._disk.record.append(Synced(self._file, upto))
        if self._sees_to_its_name:
            self._sees_to_its_name = False
            self._disk.record.append(FolderSynced(upto))


class Platter:
    """What the disk holds for sure at a moment, and what it may hold beside that."""

    def __init__(self) -> None:
        self._sure: dict[int, bytearray] = {}
        self._unsure: dict[int, list[tuple[int, Write | Cut]]] = {}
        self._names: dict[str, int] = {}
        self._unsure_names: list[tuple[int, Name]] = []

    def take(self, index: int, happened: Happened) -> None:
        """Go on by one thing of the record."""
        match happened:
            case Write() | Cut():
                self._unsure.setdefault(happened.file, []).append((index, happened))
            case Name():
                self._unsure_names.append((index, happened))
            case FolderSynced():
                for _, name in _before(self._unsure_names, happened.upto):
                    _rename(self._names, name)
            case Synced():
                sure = self._sure.setdefault(happened.file, bytearray())
                for _, change in _before(self._unsure.get(happened.file, []), happened.upto):
                    _change(sure, change)
            case Told():
                pass

    def cut(self, dice: random.Random) -> dict[str, bytes]:
        """The files that are there after the power went: all that was synced and a random part of the rest."""
        share = dice.choice(_SHARES)
        names = dict(self._names)
        for _, name in self._unsure_names:
            if dice.random() < share:
                _rename(names, name)
        return {name: self._left(file, share, dice) for name, file in names.items()}

    def _left(self, file: int, share: float, dice: random.Random) -> bytes:
        left = bytearray(self._sure.get(file, b""))
        for _, change in self._unsure.get(file, ()):
            if dice.random() < share:
                _change(left, change)
            elif isinstance(change, Write) and dice.random() < share / 2:
                for part in _sectors(change):
                    if dice.random() < 0.5:
                        _change(left, part)
        return bytes(left)


def _before(waiting: list[Any], upto: int) -> list[Any]:
    """Take those out that came before a moment."""
    sure = [each for each in waiting if each[0] < upto]
    waiting[:] = waiting[len(sure) :]
    return sure


def _rename(names: dict[str, int], change: Name) -> None:
    if change.file is None:
        names.pop(change.name, None)
    else:
        names[change.name] = change.file


def _change(content: bytearray, change: Write | Cut) -> None:
    if isinstance(change, Cut):
        del content[change.size :]
        content.extend(bytes(change.size - len(content)))
        return
    end = change.at + len(change.content)
    content.extend(bytes(max(0, change.at - len(content))))
    content[change.at : end] = change.content


def _sectors(write: Write) -> Iterator[Write]:
    at, end = write.at, write.at + len(write.content)
    while at < end:
        upto = min(end, (at // SECTOR + 1) * SECTOR)
        yield Write(write.file, at, write.content[at - write.at : upto - write.at])
        at = upto
