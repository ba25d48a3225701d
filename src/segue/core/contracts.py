"""What the rooms of the house ask of each other: the fewest verbs, as Protocols.

An adapter speaks to one platform, an agent answers a turn, a store remembers. What only some adapters can do is a
Protocol of its own, so the type says it and no flag has to.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from enum import StrEnum
from typing import Any, ParamSpec, Protocol, TypeVar, runtime_checkable

from segue.core.commands import Spec
from segue.core.envelopes import Voices
from segue.core.lanes import Address
from segue.core.messages import Arrival, Delivery, File, Part, Sending, ToolCall, ToolResult
from segue.core.transcripts import Draft, Entry
from segue.core.values import Live, Moment, Plain, SessionId, Value
from segue.errors import Invalid

P = ParamSpec("P")
T = TypeVar("T")


class Statement(Value, frozen=True):
    """One named query with its arguments."""

    name: str
    arguments: Mapping[str, Plain]


class Point(StrEnum):
    """A labelled place where a drill may stop the process."""

    WRITE_BEGUN = "write.begun"
    WRITE_DONE = "write.done"
    """Every statement ran; nothing is committed."""
    WRITE_COMMITTED = "write.committed"
    """Committed; nobody was told."""
    ACCEPT_COMMITTED = "accept.committed"
    """A message is durable; its platform wasn't told."""
    TURN_STARTED = "turn.started"
    TURN_JOURNALED = "turn.journaled"
    """A finished tool call is durable; the agent goes on."""
    TURN_ANSWERED = "turn.answered"
    """The agent is done; nothing of it is written."""
    TURN_FINISHED = "turn.finished"
    """The answer is durable; nobody was sent it."""
    STREAM_OPENED = "stream.opened"
    """There is a delivery to stream into; the platform knows nothing of it."""
    STREAM_SENT = "stream.sent"
    """The platform has a message that isn't final; its id isn't recorded."""
    STREAM_PLACED = "stream.placed"
    SEND_TAKEN = "send.taken"
    """A delivery is held; the platform wasn't called."""
    SEND_PLACED = "send.placed"
    """A placeholder is recorded, to be edited."""
    SEND_CALLED = "send.called"
    """The platform took the message; that isn't recorded."""
    SEND_RECORDED = "send.recorded"
    HANDOFF_CLAIMED = "handoff.claimed"
    """A handoff is driven; nothing was opened for it."""
    HANDOFF_OPENED = "handoff.opened"
    """The platform opened a thread; that isn't recorded."""
    HANDOFF_BOUND = "handoff.bound"
    """The session is bound in the new place and the opening turn waits."""
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


class Letter(Value, frozen=True):
    """Something that came in and couldn't be understood, as it came."""

    platform: str
    account: str
    raw: str
    why: str


Accept = Callable[[Arrival | Letter], Awaitable[Accepted]]
"""Makes an arrival durable; raises `StoreError` if that can't be done now, and then nothing may be acknowledged."""


class Connection(StrEnum):
    """How many replicas may be connected to an account at once."""

    ANY = "any"
    """As many as there are: the platform calls whichever it reaches."""
    ONE = "one"
    """One, by lease; another takes over when its holder dies."""


class Measure(StrEnum):
    """What a platform counts when it limits a text."""

    CHARACTERS = "characters"
    UTF16 = "utf16"
    BYTES = "bytes"


class Longest(Value, frozen=True):
    """The longest text that a platform takes in one message."""

    count: int
    measure: Measure = Measure.CHARACTERS


class Adapter(Protocol):
    """Speaks to one account of one platform.

    `send` raises `SendLater`, `SendNever` or `SendUnsure`; what else it raises is a bug, told loudly and tried again.
    """

    platform: str
    account: str
    sending: Sending
    connection: Connection
    longest: Longest

    async def send(self, delivery: Delivery) -> str:
        """Send one message and return the platform's id of it."""
        ...


class Cursor(Protocol):
    """How far an account's messages were taken in, as its platform says it (an offset, a sync token).

    It belongs to whoever holds the account's one connection: `keep` raises `Fenced` once somebody else does.
    """

    async def read(self) -> str:
        """What was kept last, by whichever process; empty if nothing ever was."""
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
        """What is in a file that was kept."""
        ...


@runtime_checkable
class Pulls(Protocol):
    """An adapter that fetches its arrivals.

    A connection that breaks is raised: the gateway tells it, waits, and calls `arrivals` again.
    """

    async def arrivals(self, accept: Accept, cursor: Cursor, /) -> None:
        """Take messages in until cancelled; tell the platform that it may forget one only after `accept` returned."""
        ...


@runtime_checkable
class TakesWebhooks(Protocol):
    """An adapter that the platform calls; the gateway serves it under /in/PLATFORM/ACCOUNT."""

    def webhook(self, accept: Accept) -> Callable[..., Awaitable[None]]:
        """An ASGI application that answers 2xx only after `accept` returned."""
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
class MentionsById(Protocol):
    """An adapter on whose platform people are mentioned by their ids; an agent must be told these, never pseudonyms."""

    def mention(self, user: str) -> str:
        """What to write in a text to mention somebody."""
        ...


@runtime_checkable
class SendsFiles(Protocol):
    """An adapter that sends the files of a delivery along with its text."""

    largest_file: int
    """Bytes of the largest file that the platform takes."""


@runtime_checkable
class ShowsCommands(Protocol):
    """An adapter whose platform has a menu of what can be typed; it pulls, and is asked each time that it connects."""

    async def show_commands(self, commands: Sequence[Spec]) -> None:
        """Fill the menu."""
        ...


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
class Closes(Protocol):
    """An adapter or agent that holds something open; whoever made it closes it."""

    async def close(self) -> None:
        """Let go of it."""
        ...


class Usage(Value, frozen=True):
    """What one request to a model cost, as far as the agent knows; a turn may have several."""

    model: str
    input: int = 0
    """Tokens of the whole prompt, those read from and written to a cache included."""
    output: int = 0
    """Tokens of the answer, those of its reasoning included."""
    reasoning: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float | None = None
    """In US dollars."""


Event = Part | Usage
"""What an agent says while it answers: pieces of text, whole thoughts, tool calls and results, what it cost."""


class Tool(Value, frozen=True):
    """Something that an agent may ask the gateway to do."""

    name: str
    does: str
    """What it is for, as the model reads it."""
    parameters: Mapping[str, Plain]
    """Its arguments, as a JSON schema of an object."""


class Tools(Protocol):
    """What an agent may ask the gateway to do in one turn; each call sees only what the turn's person may see."""

    @property
    def offered(self) -> tuple[Tool, ...]:
        """The tools there are."""
        ...

    async def call(self, call: ToolCall) -> ToolResult:
        """Run one; a call that can't be done is a result with `failed`. The same call id gives the same result."""
        ...


class NoTools:
    """For a turn in which there is nothing to ask the gateway for."""

    offered: tuple[Tool, ...] = ()

    async def call(self, call: ToolCall) -> ToolResult:
        """There is no such tool."""
        return ToolResult(call.id, f"There is no tool {call.name}.", failed=True)


class ReadsFiles(Protocol):
    """Where an agent finds what is in the files of a message."""

    async def read(self, file: File) -> bytes:
        """What is in a file; raises `Invalid` if it isn't kept here."""
        ...


class NoFiles:
    """For a gateway that keeps no files."""

    async def read(self, file: File) -> bytes:
        """There is none."""
        raise Invalid("file", f"{file.name} isn't kept here", "Give the gateway a place for files.")


class Background(Protocol):
    """Work that goes on behind a session's turns: while there is any, the session isn't reset."""

    async def keep(self, why: str, seconds: float) -> None:
        """Something goes on, known by these words, for at most so long; called again, for so long from now."""
        ...

    async def done(self, why: str) -> None:
        """It is done."""
        ...


class NoBackground:
    """For a turn of a session that is never reset."""

    async def keep(self, why: str, seconds: float) -> None:
        """Nothing has to be done for it."""

    async def done(self, why: str) -> None:
        """Nothing has to be done for it."""


class Work(Live, frozen=True):
    """One turn, as an agent gets it."""

    session: SessionId
    turn: int
    context: str
    """The section of the system prompt about where and with whom it talks."""
    transcript: tuple[Entry, ...]
    asked: tuple[Draft, ...]
    """What is to be answered now, each with its author."""
    journal: tuple[Part, ...] = ()
    """Tool calls and results of an earlier attempt that was cut off: they happened, and aren't to be done again."""
    voices: Voices = Voices.ONE
    tools: Tools = NoTools()
    files: ReadsFiles = NoFiles()
    background: Background = NoBackground()


class Agent(Protocol):
    """Answers a turn."""

    def answer(self, work: Work) -> AsyncIterator[Event]:
        """The reply as it comes; pieces of text that follow each other are one text.

        Raises `TooLong` where all that was said doesn't fit; whatever else it raises fails this try of the turn.
        """
        ...


@runtime_checkable
class Steers(Protocol):
    """An agent that takes in more while it answers."""

    async def steer(self, work: Work, more: tuple[Draft, ...]) -> bool:
        """Give a running turn what its person said meanwhile; False if it came too late."""
        ...


@runtime_checkable
class EndsSessions(Protocol):
    """An agent that gets a last turn when a session of its is reset, to save what it wants to remember."""

    session_ending: str
    """What it is asked then; its answer is delivered to nobody. Empty: it gets no such turn."""


class SummedUp(Value, frozen=True):
    """What an agent made of what was said, and what that cost."""

    text: str
    usage: tuple[Usage, ...] = ()


@runtime_checkable
class Compresses(Protocol):
    """An agent that knows how much it can be sent, and sums a conversation up in a way of its own."""

    window: int
    """Tokens that a prompt and its answer may have together; 0 if nobody knows."""

    async def summary(self, work: Work, focus: str) -> SummedUp:
        """What was said in the transcript, in short, for the agent itself to go on from; `focus` is what matters."""
        ...
