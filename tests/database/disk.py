"""A disk under SQLite that counts what it does and fails when it is told to."""

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import apsw

_numbers = itertools.count()


class Disk(apsw.VFS):
    """The real disk with a guard before each write and sync."""

    def __init__(self) -> None:
        self.name = f"disk{next(_numbers)}"
        self.done: Counter[str] = Counter()
        self.guard: Callable[[str], None] = lambda _: None
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        return _File(self, name, flags)

    def fail(self, which: int, error: type[apsw.Error], *, times: int = 1) -> None:
        """Fail the operations from this one on, counted from now."""
        counted = itertools.count(1)

        def guard(_: str) -> None:
            if which <= next(counted) < which + times:
                raise error(f"this disk fails operation {which}")

        self.guard = guard

    def heal(self) -> None:
        self.guard = lambda _: None

    def passes(self, what: str) -> None:
        self.guard(what)
        self.done[what] += 1


class Faulty(Disk):
    """A disk that also counts its failures, and may give wrong bytes back."""

    def __init__(self) -> None:
        self.failed = 0
        self.rot: Callable[[bytes], bytes] | None = None
        super().__init__()

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        return _FaultyFile(self, name, flags)

    def heal(self) -> None:
        super().heal()
        self.rot = None

    def passes(self, what: str) -> None:
        try:
            super().passes(what)
        except apsw.Error:
            self.failed += 1
            raise


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        super().__init__("", name, flags)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802 - SQLite's name
        self._disk.passes("write")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        self._disk.passes("sync")
        super().xSync(flags)


class _FaultyFile(_File):
    def __init__(self, disk: Faulty, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._faulty = disk
        super().__init__(disk, name, flags)
        self._of_file = bool(flags[0] & apsw.SQLITE_OPEN_MAIN_DB)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's name
        content = super().xRead(amount, offset)
        # SQLite folds whatever its log gives into the file: damage there lasts.
        rots = self._faulty.rot if self._of_file else None
        return rots(content) if rots else content

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - SQLite's name
        self._disk.passes("truncate")
        super().xTruncate(newsize)
