"""Lockers: what an account's adapter must remember beside messages, such as the keys of an encrypted chat."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from segue.core.values import Value
from segue.errors import Invalid


class Thing(Value, frozen=True):
    """One thing in a locker."""

    value: str
    """The thing itself; an empty one is not there."""
    version: int = 0
    """How often it had been changed when it was read: 0 if it wasn't there."""


class Locker(Protocol):
    """An account's things by their names, durable and the same for all replicas.

    Whoever changes a thing names the version that the change rests on, so that a replica which slept, or two at once,
    can't undo each other's work: what was made of an old version can't be kept, and so must not be used.
    """

    async def read(self, beginning: str = "") -> dict[str, Thing]:
        """All things whose names begin so."""
        ...

    async def keep(self, things: Mapping[str, Thing]) -> None:
        """Make changes durable, all or none; each then has the next version.

        Raises `Outdated` if one of them isn't what it was when it was read.
        """
        ...


@runtime_checkable
class Remembers(Protocol):
    """An adapter that needs a locker."""

    def remember(self, locker: Locker) -> None:
        """Take it; called once, before `run` and `send`."""
        ...


class NoLocker:
    """For an adapter that nobody gave a locker: nothing is in it, and nothing can be kept."""

    async def read(self, beginning: str = "") -> dict[str, Thing]:
        """Nothing."""
        del beginning
        return {}

    async def keep(self, things: Mapping[str, Thing]) -> None:
        """Refuse: what is to be durable must not seem so."""
        raise Invalid("locker", f"there is none to keep {next(iter(things))} in", "Let the adapter `remember` one.")
