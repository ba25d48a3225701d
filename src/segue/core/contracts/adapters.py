"""The contract of an adapter, which speaks to one account of one platform.

An ability that only some adapters have is a Protocol of its own, so the type says it and no flag has to.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from enum import StrEnum
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from segue.core.commands import Spec
from segue.core.lanes import Address
from segue.core.messages import Arrival, Delivery, File, Sending, SendStatus
from segue.core.values import Value


class Accepted(StrEnum):
    """Outcomes of an arrival; whichever it is, it is durable and may be acknowledged."""

    NEW = "new"
    DUPLICATE = "duplicate"
    DEAD = "dead"
    """It couldn't be understood and is kept as a dead letter."""
    LIMITED = "limited"
    """It was refused, since its person has as much as they may; they were told. Sent again later it may be taken."""


class Letter(Value, frozen=True):
    """Something that came in and couldn't be understood, as it came."""

    platform: str
    account: str
    raw: str
    why: str
    kind: str = "Invalid"
    """The type of the error that it came to."""


class Unfetched(NamedTuple):
    """A message whose files are still on its platform: nobody's bytes are taken in before they may speak."""

    arrival: Arrival
    """It names its files without saying where they are (`File.where` is empty)."""
    fetch: Callable[[], Awaitable[Arrival | Letter]]
    """Called at most once, only when the message is let in: the arrival with its files, kept."""


class StatusReport(Value, frozen=True):
    """Word of the platform about a message that it took: what became of it."""

    platform: str
    account: str
    message: str
    """The platform's id of the message."""
    fate: SendStatus
    why: str = ""
    """The platform's reason, in words fit for people."""
    key: str = ""
    """The key of the delivery, if the platform gives it back."""


Arrived = Arrival | Letter | Unfetched | StatusReport
Accept = Callable[[Arrived], Awaitable[Accepted]]
"""Makes an arrival durable; raises `StoreError` if that can't be done now, and then nothing may be acknowledged."""


class Connection(StrEnum):
    """How many replicas may be connected to an account at once."""

    ANY = "any"
    """As many as there are: the platform calls whichever it reaches."""
    ONE = "one"
    """One, by lease; another takes over when its holder dies."""


class Adapter(Protocol):
    """Speaks to one account of one platform."""

    platform: str
    account: str
    sending: Sending
    connection: Connection

    async def run(self, intake: "Intake") -> None:
        """Live: check the token, fill the menu, take messages in or see to it that the platform calls, until cancelled.

        What breaks is raised, as `Disconnected` if its words are fit for people: it is told, and `run` is called again
        after a while. An adapter that only waits to be called may return.
        """
        ...

    def fits(self, text: str) -> bool:
        """Whether a text goes out as one message, in the form that the platform gets; longer ones are cut."""
        ...

    async def send(self, delivery: Delivery) -> str:
        """Send one message and return the platform's id of it.

        Raises `SendLater`, `SendNever` or `SendUnsure`; what else it raises is a bug, told loudly and tried again.
        """
        ...


class Cursor(Protocol):
    """How far an account's messages were taken in, as its platform says it (an offset, a sync token).

    It belongs to whoever holds the account's one connection: `keep` raises `Fenced` once somebody else does.
    """

    async def read(self) -> str:
        """The value that was kept last, by whichever process; empty if none ever was."""
        ...

    async def keep(self, value: str) -> None:
        """Make it durable; only after `accept` returned for all that lies before it."""
        ...


class Files(Protocol):
    """Keeps the files that come and go with messages; whoever makes an adapter gives it one."""

    async def keep(self, name: str, media: str, chunks: AsyncIterator[bytes]) -> File:
        """Make a file durable; raises `StoreError` if that can't be done now, and whatever `chunks` raises."""
        ...

    async def read(self, file: File) -> bytes:
        """The content of a file that was kept."""
        ...

    def stream(self, file: File) -> AsyncIterator[bytes]:
        """The same a piece at a time; raises `Invalid` before the first piece if it isn't kept here."""
        ...


class Intake(Protocol):
    """An account's side of the gateway, given to its adapter for one life."""

    @property
    def line(self) -> str:
        """The connection that this life keeps up, of those in `HasLines.lines`; empty where there is one alone."""
        ...

    @property
    def commands(self) -> Sequence[Spec]:
        """Everything that can be typed, for a menu."""
        ...

    @property
    def cursor(self) -> Cursor:
        """The place up to which messages were taken in."""
        ...

    async def accept(self, arrived: Arrived) -> Accepted:
        """Make it durable; the platform may forget it, or hear 2xx, only after this returned.

        Whatever `fetch` of an `Unfetched` raises is raised, and then nothing was changed.
        """
        ...

    def connected(self) -> None:
        """Say that the platform answers: from now on the account is well."""
        ...


@runtime_checkable
class HasTroubles(Protocol):
    """An adapter that may know of something that doesn't work though its platform answers."""

    @property
    def troubles(self) -> Sequence[str]:
        """Each in a sentence for the host, with what to do: shown beside the account's health until it is over."""
        ...


@runtime_checkable
class HasLines(Protocol):
    """An adapter that needs several connections to its platform, such as the shards of a bot that is in many guilds.

    Each has a life, a lease and a cursor of its own: `run` is called for each, and replicas share them out.
    """

    @property
    def lines(self) -> Sequence[str]:
        """Their names, which stay the same from one start to the next."""
        ...


@runtime_checkable
class TakesWebhooks(Protocol):
    """An adapter that the platform calls; the gateway serves it under /in/PLATFORM/ACCOUNT, also while `run` fails."""

    def webhook(self, accept: Accept) -> Callable[..., Awaitable[None]]:
        """An ASGI application that answers 2xx only after `accept` returned."""
        ...


@runtime_checkable
class TakesLargeBodies(Protocol):
    """An adapter whose platform sends larger bodies to its webhook than the server takes elsewhere (1 MB)."""

    @property
    def largest_body(self) -> int:
        """Bytes of the largest."""
        ...


@runtime_checkable
class OpensThreads(Protocol):
    """An adapter whose platform can open a thread."""

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        """Open a thread; the same key gives the same thread. A reply in it comes from the address returned."""
        ...


@runtime_checkable
class RenamesThreads(Protocol):
    """An adapter whose platform shows a title of each thread, which may change."""

    async def rename(self, thread: Address, title: str) -> None:
        """Call a thread something else, once or again; raises `SendError` if the platform won't."""
        ...


@runtime_checkable
class EditsMessages(Protocol):
    """An adapter whose platform can change a message that was sent."""

    async def edit(self, delivery: Delivery) -> None:
        """Replace the text of `delivery.message`; raises `MessageGone` if it was deleted, and it is sent anew."""
        ...


@runtime_checkable
class ShowsSteps(Protocol):
    """An adapter whose platform has a form of its own for a reply that grows, and for what the agent does meanwhile."""

    async def grow(self, delivery: Delivery, steps: Sequence[str]) -> bool:
        """Show a text in `delivery.message`, a placeholder before, and the steps, of which the last one goes on.

        False if it can't be shown so there: then the message is edited. The final text comes by `edit`.
        """
        ...


@runtime_checkable
class DeletesMessages(Protocol):
    """An adapter whose platform lets a message be deleted that was sent."""

    async def delete(self, address: Address, message: str) -> None:
        """Delete one of the account's own messages, once or again; raises `SendError` if the platform won't."""
        ...


@runtime_checkable
class ShowsTyping(Protocol):
    """An adapter whose platform can show that somebody writes."""

    async def typing(self, address: Address) -> None:
        """Show it for the few seconds that the platform grants."""
        ...


@runtime_checkable
class MentionsById(Protocol):
    """An adapter on whose platform people are mentioned by their ids; an agent must be told these, never pseudonyms."""

    def mention(self, user: str) -> str:
        """The words in a text that mention somebody."""
        ...


@runtime_checkable
class SendsFiles(Protocol):
    """An adapter that sends a delivery which is a file."""

    largest_file: int
    """Bytes of the largest file that the platform takes."""


@runtime_checkable
class Whispers(Protocol):
    """An adapter that sends a delivery so that only `delivery.only` sees it, in a chat of several people."""

    whispers: Literal[True]


@runtime_checkable
class WhispersInAnswer(Protocol):
    """An adapter that can do so only in answer to some messages, such as a slash command."""

    def whispers_to(self, message: str) -> bool:
        """Whether `delivery.only` alone would see an answer to this message."""
        ...


@runtime_checkable
class ShowsButtons(Protocol):
    """An adapter that shows a delivery's choices as buttons, or hands them to whoever does."""

    buttons: Literal[True]


@runtime_checkable
class HasStartLinks(Protocol):
    """An adapter whose platform has links that open a chat with the agent: what follows /start comes with them."""

    async def start_link(self, code: str) -> str:
        """A link that makes whoever follows it send `/start CODE`, which is `/link CODE`; may raise `SendError`."""
        ...


@runtime_checkable
class ReadsBack(Protocol):
    """An adapter whose platform tells whether a message with this key is there."""

    async def find(self, delivery: Delivery) -> str | None:
        """The platform's id of the message that this delivery already made, if it did."""
        ...


@runtime_checkable
class ReportsStatus(Protocol):
    """An adapter whose platform tells later, by a `StatusReport`, whether a message was sent: the only receipt."""

    reports_within: float
    """Seconds after which a message of which nothing was told is given up."""


@runtime_checkable
class IsMetered(Protocol):
    """An adapter whose platform counts the messages of a month, and wants to be paid beyond some."""

    free_a_month: int
    """Messages of a month that cost nothing; the adapter reports the status of each."""


@runtime_checkable
class SendsByAnyId(Protocol):
    """An adapter whose chats have several ids that change: a delivery tells it all of them, in `delivery.chats`."""

    any_id: Literal[True]


@runtime_checkable
class KnowsPlaceholders(Protocol):
    """An adapter that can tell a placeholder of its own by its id, on a platform that can't be searched for one."""

    def ids_after(self, delivery: Delivery) -> Sequence[str]:
        """The ids that messages have which followed what this delivery answers, in their order; a few."""
        ...

    async def is_placeholder(self, delivery: Delivery, message: str) -> bool:
        """Whether a message there is the account's own and says what `delivery.placeholder` does; nothing changes."""
        ...


@runtime_checkable
class Closes(Protocol):
    """An adapter or agent that holds something open; whoever made it closes it."""

    async def close(self) -> None:
        """Let go of it."""
        ...
