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
