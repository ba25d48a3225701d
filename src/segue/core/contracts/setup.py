"""The setup of a platform by `segue add`: its questions, and the results of the answers."""

from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

from segue.core.settings import DmThreads
from segue.core.values import Secret, Value


class SetupQuestion(Value, frozen=True):
    """One thing that must be known."""

    key: str
    """Its name in scripts: --set KEY=ANSWER."""
    asks: str
    secret: bool = False
    default: str | None = None
    """The default answer; None if there must be one."""
    when: tuple[str, str] = ("", "")
    """Another question, and the answer to it without which this one isn't asked; else it is always asked."""


class Added(Value, frozen=True):
    """The facts found out live, and the lines to be written."""

    name: str
    """A name for the account."""
    says: str
    """The findings, for whoever is adding it."""
    keys: Mapping[str, str] = {}
    """Keys of [PLATFORM.ACCOUNT] that may be read by anybody."""
    secrets: Mapping[str, Secret] = {}
    """Keys that are written as a reference."""
    users: Mapping[str, tuple[str, ...]] = {}
    """Keys that list users: whoever is adding it comes first in each."""
    link: str = ""
    """The link that opens a chat with it, for whoever is adding it."""


class FoundOwner(Value, frozen=True):
    """Somebody who wrote to the account in private."""

    user: str
    chat: str
    name: str
    """Their name, for them to see that it is they."""
    cursor: str
    """The cursor when they were met."""


@runtime_checkable
class NeedsServers(Protocol):
    """Keys of an account or an agent that is of no use unless somebody answers at certain addresses."""

    @property
    def servers(self) -> Mapping[str, str]:
        """The addresses, by the keys that name them."""
        ...


@runtime_checkable
class IsTried(Protocol):
    """Keys of an agent that can be started once, to see whether it works."""

    async def tried(self) -> str:
        """Start it and end it; returns what it can, raises `AgentFailed` if it doesn't work."""
        ...


@runtime_checkable
class BeginsDmThreads(Protocol):
    """Keys of an account that say how threads in its private chats begin, unless the host says so."""

    @property
    def dm_threads(self) -> DmThreads | None:
        """The way that fits; None if none does better than the host's own."""
        ...


@runtime_checkable
class IsAdded(Protocol):
    """The keys of an account that `segue add` can ask for: a class that makes adapters may have this too."""

    @classmethod
    def questions(cls) -> tuple[SetupQuestion, ...]:
        """The questions, in the order in which they are asked."""
        ...

    @classmethod
    async def added(cls, answers: Mapping[str, str]) -> Added:
        """Check the answers with the platform itself; raises `Invalid` or `Disconnected`."""
        ...

    async def greet(self, account: str, user: str) -> str:
        """Send somebody a first message; returns what to tell whoever is adding the account."""
        ...


@runtime_checkable
class IsScanned(IsAdded, Protocol):
    """Keys of an account that is made, or joined to somebody's phone, by a code that they scan."""

    @classmethod
    async def scanned(cls, answers: Mapping[str, str], show: Callable[[str], None]) -> Mapping[str, str]:
        """The answers with what the scan told; `show` is given what each code says, whenever there is a new one.

        Called before `added`; shows nothing if the answers have it already. Raises `Invalid` or `Disconnected`.
        """
        ...


@runtime_checkable
class MeetsPeople(IsAdded, Protocol):
    """Keys of an account that whoever is adding it can write to: so their own id is found."""

    @classmethod
    async def meet(cls, answers: Mapping[str, str], after: str) -> FoundOwner:
        """Wait for the next who writes in private, after a `FoundOwner.cursor` or from what waits there."""
        ...


@runtime_checkable
class TellsAgain(MeetsPeople, Protocol):
    """The same on a platform that tells again what was read there, until it hears that it may forget it."""

    @classmethod
    async def acknowledge(cls, answers: Mapping[str, str], cursor: str) -> None:
        """Let the platform forget what was read up to a `FoundOwner.cursor`, so that nobody answers it again."""
        ...
