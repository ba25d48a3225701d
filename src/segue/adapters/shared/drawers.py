"""Things of one kind in an account's locker, as values instead of texts with versions."""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import msgspec

from segue.core.contracts.lockers import Locker, NoLocker, Thing
from segue.core.values import converted

T = TypeVar("T")


class Drawer:
    """The things in a locker whose names begin alike; here they are called by what follows."""

    def __init__(self, locker: Locker, beginning: str) -> None:
        self._locker = locker
        self._at = beginning
        self._versions: dict[str, int] = {}

    async def read(self, beginning: str = "") -> dict[str, Any]:
        """What is kept under names that begin so, as JSON holds it; later changes rest on this reading."""
        things = await self._locker.read(f"{self._at}{beginning}")
        if not beginning:
            self._versions.clear()  # what somebody else took out isn't among them
        self._versions |= {name: thing.version for name, thing in things.items()}
        return {name.removeprefix(self._at): msgspec.json.decode(thing.value) for name, thing in things.items()}

    async def keep(self, changes: Mapping[str, object]) -> None:
        """Make changes durable, all or none; None takes a thing out.

        Raises `Outdated` if one of the things isn't what it was when it was last read or kept here.
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
    """Values of one type in a drawer, all of which are known from `recall` on."""

    def __init__(self, beginning: str, kind: type[T]) -> None:
        self._beginning = beginning
        self._kind = kind
        self._drawer = Drawer(NoLocker(), beginning)
        self.values: dict[str, T] = {}

    def remember(self, locker: Locker) -> None:
        """Take the locker."""
        self._drawer = Drawer(locker, self._beginning)

    async def recall(self) -> None:
        """Find what was kept before."""
        self.values = {name: converted(value, self._kind) for name, value in (await self._drawer.read()).items()}

    async def put(self, name: str, value: T) -> None:
        """Put a value in, in place of what was there."""
        await self._drawer.keep({name: value})
        self.values[name] = value

    async def drop(self, *names: str) -> None:
        """Take values out, of those that are there."""
        there = [name for name in names if name in self.values]
        await self._drawer.keep(dict.fromkeys(there))
        for name in there:
            del self.values[name]
