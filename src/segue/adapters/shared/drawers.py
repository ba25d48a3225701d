"""Values of one kind in an account's locker, without their encoding and versions."""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec

from segue.core.contracts.lockers import Locker, NoLocker, Thing
from segue.core.values import converted

T = TypeVar("T")


class Drawer:
    """The entries of a locker under one prefix. Names here omit the prefix."""

    def __init__(self, locker: Locker, beginning: str) -> None:
        self._locker = locker
        self._at = beginning
        self._versions: dict[str, int] = {}

    async def read(self, beginning: str = "") -> dict[str, Any]:
        """Return the entries whose names begin so, parsed from JSON.

        Later changes compare their versions with this reading.
        """
        things = await self._locker.read(f"{self._at}{beginning}")
        if not beginning:
            self._versions.clear()  # entries that somebody else deleted are missing from the reading
        self._versions |= {name: thing.version for name, thing in things.items()}
        return {name.removeprefix(self._at): msgspec.json.decode(thing.value) for name, thing in things.items()}

    async def keep(self, changes: Mapping[str, object]) -> None:
        """Store all changes or none; None deletes an entry.

        Raises `Outdated` if somebody else changed an entry after it was last read or stored here.
        """
        values = {
            f"{self._at}{name}": "" if value is None else msgspec.json.encode(value).decode()
            for name, value in changes.items()
        }
        things = {name: Thing(value, self._versions.get(name, 0)) for name, value in values.items()}
        if things:
            await self._locker.keep(things)
        self._versions |= {name: thing.version + 1 if thing.value else 0 for name, thing in things.items()}


class Kept(Generic[T]):
    """Values of one type in a drawer. All are in memory after `recall`."""

    def __init__(self, beginning: str, kind: type[T]) -> None:
        self._beginning = beginning
        self._kind = kind
        self._drawer = Drawer(NoLocker(), beginning)
        self.values: dict[str, T] = {}

    def remember(self, locker: Locker) -> None:
        """Use this locker from now on."""
        self._drawer = Drawer(locker, self._beginning)

    async def recall(self) -> None:
        """Load the stored values."""
        self.values = {name: converted(value, self._kind) for name, value in (await self._drawer.read()).items()}

    async def put(self, name: str, value: T) -> None:
        """Store a value under a name, replacing the old one."""
        await self._drawer.keep({name: value})
        self.values[name] = value

    async def drop(self, *names: str) -> None:
        """Delete the values under these names; ignore missing ones."""
        there = [name for name in names if name in self.values]
        await self._drawer.keep(dict.fromkeys(there))
        for name in there:
            del self.values[name]
