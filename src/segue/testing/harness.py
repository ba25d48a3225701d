"""What the author of an adapter gives the contracts: a platform that a test can speak on, and the adapter for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from segue.core.contracts.adapters import Accept, Adapter, Cursor, Pulls
from segue.core.lanes import Address, Kind
from segue.core.values import Value
from segue.errors import StoreError


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

    async def read(self, at: Address) -> list[Seen]:
        """All that the agent has said somewhere, the oldest first."""
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


class Bookmark:
    """A cursor kept in memory: an account's harness has one, which outlives its adapters."""

    def __init__(self, value: str = "") -> None:
        self.value = value

    async def read(self) -> str:
        """What was kept last."""
        return self.value

    async def keep(self, value: str) -> None:
        """Keep it."""
        self.value = value


@asynccontextmanager
async def pulling(adapter: Pulls, accept: Accept, cursor: Cursor | None = None) -> AsyncIterator[None]:
    """Run an adapter that fetches its arrivals, as the gateway does: a connection that breaks is made again."""
    kept = cursor or Bookmark()

    async def stay_connected() -> None:
        while True:
            try:
                await adapter.arrivals(accept, kept)
            except (OSError, StoreError, TimeoutError):
                await asyncio.sleep(0)

    task = asyncio.create_task(stay_connected())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()):
            raise error
