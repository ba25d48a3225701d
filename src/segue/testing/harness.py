"""Harnesses: an adapter's author writes one, so that the contracts can use the platform and the adapter."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from segue.core.commands import Spec
from segue.core.contracts.adapters import Accept, Accepted, Adapter, Arrived, Cursor, Intake
from segue.core.contracts.lockers import Thing
from segue.core.lanes import Address, Kind
from segue.core.values import Value
from segue.errors import Outdated, StoreError
from segue.testing.inbox import Shelf
from segue.testing.waits import Changes


class Seen(Value, frozen=True):
    """A message of the agent, as a person sees it now."""

    message: str
    text: str


class Harness(Protocol):
    """A platform under the control of a test."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of chats on this platform."""
        ...

    def adapter(self) -> Adapter:
        """Return a new adapter for the account, without any memory of an earlier one."""
        ...

    def deliver(self, adapter: Adapter, accept: Accept) -> AbstractAsyncContextManager[None]:
        """Deliver people's messages to the adapter inside the block.

        The block ends as suddenly as a killed process.
        """
        ...

    async def chat(self, kind: Kind, who: str = "Ann") -> Address:
        """Return a new chat with this person. A private chat belongs to them and may be the same each time."""
        ...

    async def say(self, at: Address, text: str, who: str = "Ann") -> str:
        """Write a message as a person; return its id."""
        ...

    @property
    def shelf(self) -> Shelf:
        """The store for the files of the account's adapters."""
        ...

    async def attach(self, at: Address, name: str, content: bytes, who: str = "Ann") -> str:
        """Send a file as a person; return the message's id, empty where messages have no files."""
        ...

    async def read(self, at: Address) -> list[Seen]:
        """Return the agent's messages at an address, oldest first."""
        ...

    async def redeliver(self) -> None:
        """Deliver again everything that the platform has delivered."""
        ...

    async def garble(self) -> None:
        """Deliver an unreadable update."""
        ...

    async def nowhere(self) -> Address:
        """Return an address at which the platform accepts no messages."""
        ...


class Forges(Harness, Protocol):
    """A harness of an adapter that others than the platform can call."""

    async def forge(self, at: Address, text: str) -> list[int]:
        """Deliver a message from an impostor in every possible way; return the response statuses."""
        ...


class Edits(Harness, Protocol):
    """A harness of a platform on which people can edit their messages."""

    async def change(self, at: Address, message: str, text: str, who: str = "Ann") -> None:
        """Edit a message as a person."""
        ...


class Quotes(Harness, Protocol):
    """A harness of a platform on which people can quote a message."""

    async def quote(self, at: Address, message: str, text: str, who: str = "Ann") -> str:
        """Answer a message as a person; return the answer's id."""
        ...


class Deletes(Harness, Protocol):
    """A harness of a platform that reports deleted messages."""

    async def delete(self, at: Address, message: str, who: str = "Ann") -> None:
        """Delete a person's own message."""
        ...


class Overhears(Harness, Protocol):
    """A harness of a platform that can show a message to one person only."""

    async def read_as(self, at: Address, who: str) -> list[Seen]:
        """Return the agent's messages at an address that this person can see, oldest first."""
        ...


class Bookmark:
    """A cursor in memory. It belongs to the harness of an account and outlives the adapters."""

    def __init__(self, value: str = "") -> None:
        self.value = value

    async def read(self) -> str:
        """Return the position that was stored last."""
        return self.value

    async def keep(self, value: str) -> None:
        """Store a position."""
        self.value = value


class Chest:
    """A locker in memory. It belongs to the harness of an account and outlives the adapters."""

    def __init__(self) -> None:
        self.things: dict[str, Thing] = {}

    async def read(self, beginning: str = "") -> dict[str, Thing]:
        """Return all entries whose names begin so."""
        return {name: thing for name, thing in self.things.items() if name.startswith(beginning)}

    async def keep(self, things: Mapping[str, Thing]) -> None:
        """Change all of these entries or none."""
        for name, thing in things.items():
            if self.things.get(name, Thing("")).version != thing.version:
                raise Outdated(name)
        for name, thing in things.items():
            self.things.pop(name, None)
            if thing.value:
                self.things[name] = Thing(thing.value, thing.version + 1)


class Given:
    """An intake in memory: pass `Given(inbox.accept)` to `adapter.run`."""

    def __init__(
        self, accept: Accept, cursor: Cursor | None = None, commands: Sequence[Spec] = (), line: str = ""
    ) -> None:
        self.line = line
        self.cursor = cursor or Bookmark()
        self.commands = commands
        self._accept = accept
        self._changes = Changes()
        self._well = False

    async def accept(self, arrived: Arrived) -> Accepted:
        """Pass an arrival on."""
        return await self._accept(arrived)

    def connected(self) -> None:
        """Note that the platform answers."""
        self._well = True
        self._changes.tell()

    async def is_well(self) -> None:
        """Wait until the adapter has reported a connection."""
        await self._changes.until(lambda: self._well or None, lambda: "the adapter never said that it is connected")


@asynccontextmanager
async def living(adapter: Adapter, intake: Intake) -> AsyncIterator[None]:
    """Run an adapter as the gateway does: restart it after errors."""

    async def live() -> None:
        while True:
            with contextlib.suppress(OSError, StoreError, TimeoutError):
                return await adapter.run(intake)
            await asyncio.sleep(0)

    task = asyncio.create_task(live())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()):
            raise error
