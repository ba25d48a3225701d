"""How a platform is added by `segue add`: what it asks, and what comes of the answers."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from segue.core.values import Secret, Value


class SetupQuestion(Value, frozen=True):
    """One thing that must be known."""

    key: str
    """Its name in scripts: --set KEY=ANSWER."""
    asks: str
    secret: bool = False
    default: str | None = None
    """What holds if nothing is answered; None if something must be."""


class Added(Value, frozen=True):
    """What was found out live, and what is to be written."""

    name: str
    """What the account may be called."""
    says: str
    """What was found, for whoever is adding it."""
    keys: Mapping[str, str] = {}
    """Keys of [PLATFORM.ACCOUNT] that may be read by anybody."""
    secrets: Mapping[str, Secret] = {}
    """Keys that are written as a reference."""
    users: Mapping[str, tuple[str, ...]] = {}
    """Keys that list users: whoever is adding it comes first in each."""
    link: str = ""
    """What opens a chat with it, for whoever is adding it."""


class FoundOwner(Value, frozen=True):
    """Somebody who wrote to the account in private."""

    user: str
    chat: str
    name: str
    """How they are shown, for them to see that it is they."""
    cursor: str
    """How far was read when they were met."""


@runtime_checkable
class IsAdded(Protocol):
    """The keys of an account that `segue add` can ask for: a class that makes adapters may have this too."""

    @classmethod
    def questions(cls) -> tuple[SetupQuestion, ...]:
        """What must be known, in the order in which it is asked."""
        ...

    @classmethod
    async def added(cls, answers: Mapping[str, str]) -> Added:
        """Check the answers with the platform itself; raises `Invalid` or `Disconnected`."""
        ...

    async def greet(self, account: str, user: str) -> str:
        """Send somebody a first message; returns what to tell whoever is adding the account."""
        ...


@runtime_checkable
class MeetsPeople(IsAdded, Protocol):
    """Keys of an account that whoever is adding it can write to: so their own id is found."""

    @classmethod
    async def meet(cls, answers: Mapping[str, str], after: str) -> FoundOwner:
        """Wait for the next who writes in private, after a `Met.cursor` or from what waits there."""
        ...

    @classmethod
    async def acknowledge(cls, answers: Mapping[str, str], cursor: str) -> None:
        """Let the platform forget what was read up to a `Met.cursor`, so that nobody answers it again."""
        ...
