"""What the rooms of the house ask of each other: the fewest verbs, as Protocols.

An adapter speaks to one platform, an agent answers a turn, a store remembers. What only some adapters can do is a
Protocol of its own, so the type says it and no flag has to.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from enum import StrEnum
from typing import Any, ParamSpec, Protocol, TypeVar, runtime_checkable

from segue.core.lanes import Address
from segue.core.messages import Arrival, Delivery, Part, Sending
from segue.core.transcripts import Entry
from segue.core.values import Moment, SessionId, Value

P = ParamSpec("P")
T = TypeVar("T")


class Statement(Value, frozen=True):
    """One named query with its arguments."""

    name: str
    arguments: Mapping[str, Any]


class Point(StrEnum):
    """A labelled place where a drill may stop the process."""

    WRITE_BEGUN = "write.begun"
    WRITE_DONE = "write.done"
    """Every statement ran; nothing is committed."""
    WRITE_COMMITTED = "write.committed"
    """Committed; nobody was told."""
    MIGRATION_BEGUN = "migration.begun"
    MIGRATION_DONE = "migration.done"
    MIGRATION_COMMITTED = "migration.committed"


Row = Sequence[Any]
Transaction = Generator[Statement, list[Row], T]
"""A short piece of work on the database: it yields statements and receives their rows. It can run again, because it is
a function of its arguments."""
Clock = Callable[[], Moment]
Ids = Callable[[], str]
Probe = Callable[[Point], None]


class Driver(Protocol):
    """Runs transactions against one database."""

    async def write(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run it once; when this returns, what it did is durable."""
        ...

    async def read(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one that only reads, beside the writers."""
        ...

    async def hint(self, topic: str) -> None:
        """Wake every process that shares this database; only a hint, it may get lost."""
        ...

    def listen(self, heard: Callable[[str], None]) -> Callable[[], None]:
        """Call back, on the event loop, for each hint; returns how to stop."""
        ...

    async def close(self) -> None:
        """Finish what was accepted and let go of the database."""
        ...


class Accepted(StrEnum):
    """What became of an arrival; whichever it is, it is durable and may be acknowledged."""

    NEW = "new"
    DUPLICATE = "duplicate"
    DEAD = "dead"
    """It couldn't be understood and is kept as a dead letter."""


Accept = Callable[[Arrival], Awaitable[Accepted]]


class Adapter(Protocol):
    """Speaks to one account of one platform."""

    platform: str
    account: str
    sending: Sending

    async def arrivals(self, accept: Accept) -> None:
        """Take in messages until cancelled; acknowledge one to the platform only after `accept` returned."""
        ...

    async def send(self, delivery: Delivery) -> str:
        """Send one message and return the platform's id of it."""
        ...


@runtime_checkable
class OpensThreads(Protocol):
    """An adapter whose platform can open a thread."""

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        """Open a thread; the same key gives the same thread. A reply in it comes from the address returned."""
        ...


@runtime_checkable
class EditsMessages(Protocol):
    """An adapter whose platform can change a message that was sent."""

    async def edit(self, delivery: Delivery) -> None:
        """Replace the text of `delivery.message`."""
        ...


@runtime_checkable
class ShowsTyping(Protocol):
    """An adapter whose platform can show that somebody writes."""

    async def typing(self, address: Address) -> None:
        """Show it for the few seconds that the platform grants."""
        ...


@runtime_checkable
class ReadsBack(Protocol):
    """An adapter whose platform tells whether a message with this key is there."""

    async def find(self, delivery: Delivery) -> str | None:
        """The platform's id of the message that this delivery already made, if it did."""
        ...


class Work(Value, frozen=True):
    """One turn, as an agent gets it."""

    session: SessionId
    turn: int
    context: str
    """The section of the system prompt about where and with whom it talks."""
    transcript: tuple[Entry, ...]
    asked: tuple[Entry, ...]
    """What is to be answered now."""
    journal: tuple[Part, ...] = ()
    """Tool calls and results of an earlier attempt that was cut off."""


class Agent(Protocol):
    """Answers a turn."""

    def answer(self, work: Work) -> AsyncIterator[Part]:
        """The parts of the reply as they come; text parts may be pieces of one text."""
        ...
