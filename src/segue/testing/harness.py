"""Harnesses, which the author of an adapter gives the contracts: a platform to speak on, and the adapter for it."""

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
    """A message of the agent's, as a person sees it now."""

    message: str
    text: str


class Harness(Protocol):
    """A platform under the control of a test."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of chats that there are."""
        ...

    def adapter(self) -> Adapter:
        """A new adapter for the account, which remembers nothing of an earlier one."""
        ...

    def deliver(self, adapter: Adapter, accept: Accept) -> AbstractAsyncContextManager[None]:
        """Inside, what people say reaches the adapter; the end is as sudden as that of a killed process."""
        ...

    async def chat(self, kind: Kind, who: str = "Ann") -> Address:
        """A new chat that this person is in; a private one is theirs, and may be the same each time."""
        ...

    async def say(self, at: Address, text: str, who: str = "Ann") -> str:
        """A person writes; returns the message's id."""
        ...

    @property
    def shelf(self) -> Shelf:
        """The shelf on which the account's adapters keep files."""
        ...

    async def attach(self, at: Address, name: str, content: bytes, who: str = "Ann") -> str:
        """A person sends a file; returns the message's id, or nothing where messages have no files."""
        ...

    async def read(self, at: Address) -> list[Seen]:
        """The agent's messages somewhere, the oldest first."""
        ...

    async def redeliver(self) -> None:
        """The platform delivers everything once more that it has delivered."""
        ...

    async def garble(self) -> None:
        """The platform delivers something that can't be understood."""
        ...

    async def nowhere(self) -> Address:
        """An address at which the platform takes no messages."""
        ...


class Forges(Harness, Protocol):
    """A harness of an adapter that others than the platform could call."""

    async def forge(self, at: Address, text: str) -> list[int]:
        """Somebody who isn't the platform delivers a message, in each way there is; returns the answers' statuses."""
        ...


class Edits(Harness, Protocol):
    """A harness of a platform on which people can change what they wrote."""

    async def change(self, at: Address, message: str, text: str, who: str = "Ann") -> None:
        """A person changes a message."""
        ...


class Quotes(Harness, Protocol):
    """A harness of a platform on which people can quote a message."""

    async def quote(self, at: Address, message: str, text: str, who: str = "Ann") -> str:
        """A person answers a message; returns the id of the answer."""
        ...


class Deletes(Harness, Protocol):
    """A harness of a platform that tells when somebody takes back what they wrote."""

    async def delete(self, at: Address, message: str, who: str = "Ann") -> None:
        """A person deletes a message of theirs."""
        ...


class Overhears(Harness, Protocol):
    """A harness of a platform on which one person can be shown what others aren't."""

    async def read_as(self, at: Address, who: str) -> list[Seen]:
        """All that the agent has said somewhere and this person is shown, the oldest first."""
        ...


class Bookmark:
    """A cursor kept in memory: an account's harness has one, which outlives its adapters."""

    def __init__(self, value: str = "") -> None:
        self.value = value

    async def read(self) -> str:
        """The cursor that was kept last."""
        return self.value

    async def keep(self, value: str) -> None:
        """Keep it."""
        self.value = value


class Chest:
    """A locker in memory: an account's harness has one, which outlives its adapters."""

    def __init__(self) -> None:
        self.things: dict[str, Thing] = {}

    async def read(self, beginning: str = "") -> dict[str, Thing]:
        """All things whose names begin so."""
        return {name: thing for name, thing in self.things.items() if name.startswith(beginning)}

    async def keep(self, things: Mapping[str, Thing]) -> None:
        """Change things, all or none."""
        for name, thing in things.items():
            if self.things.get(name, Thing("")).version != thing.version:
                raise Outdated(name)
        for name, thing in things.items():
            self.things.pop(name, None)
            if thing.value:
                self.things[name] = Thing(thing.value, thing.version + 1)


class Given:
    """An intake in memory: `Given(inbox.accept)` is what `adapter.run` wants."""

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
        """The platform answers."""
        self._well = True
        self._changes.tell()

    async def is_well(self) -> None:
        """Wait until the adapter has said that it is connected."""
        await self._changes.until(lambda: self._well or None, lambda: "the adapter never said that it is connected")


@asynccontextmanager
async def living(adapter: Adapter, intake: Intake) -> AsyncIterator[None]:
    """Run an adapter as the gateway does: what breaks is made again."""

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
