"""The contract of a database: a transaction yields statements, a driver runs it."""

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar

from segue.core.contracts.wakes import Wake
from segue.core.values import Moment, Plain, Value

P = ParamSpec("P")
T = TypeVar("T")


class Statement(Value, frozen=True):
    """One named query with its arguments."""

    name: str
    arguments: Mapping[str, Plain]
    must: bool = False
    """Whether the transaction runs again from its start if this finds or changes no row."""


class Together(Value, frozen=True):
    """Statements that are sent together; a list of rows comes back for each of them."""

    statements: tuple[Statement, ...]
    last: bool = False
    """Whether no statement follows: the transaction is committed with these. After it only wake-ups may be yielded, and
    an error may be raised only if nothing was changed."""


Row = Sequence[Any]
Transaction = Generator[Statement | Together | Wake, list[Row], T]
"""A short piece of work on the database: it yields statements and receives their rows, and yields wake-ups, which are
sent once it is committed. It can run again, because it is a function of its arguments. What has no rows that it could
read (a write that returns nothing, or one that must change something) may be sent later, in order, with the next
statement that has."""
Clock = Callable[[], Moment]
Ids = Callable[[], str]


def urgent(transaction: Callable[P, Transaction[T]]) -> Callable[P, Transaction[T]]:
    """Mark a transaction that waits for no other: where connections can run out, it has one of its own."""
    URGENT.add(transaction)
    return transaction


URGENT: set[Callable[..., Transaction[Any]]] = set()


class Driver(Protocol):
    """Runs transactions against one database."""

    @property
    def copies(self) -> Sequence[str]:
        """Copies of what is written that the database may have made and that we don't reach, in words."""
        ...

    async def write(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run it once; when this returns, what it did is durable."""
        ...

    async def read(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run one that only reads, beside the writers."""
        ...

    async def scrub(self) -> bool:
        """Clean free space, log and indexes of what rows held before; returns whether nothing is left."""
        ...

    async def damage(self) -> str:
        """Look through it for damage, slowly and beside all work; returns what is wrong and what to do."""
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
