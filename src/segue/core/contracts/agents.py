"""The contract of an agent, which answers a turn."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Literal, Protocol, runtime_checkable

from segue.core.lanes import Identity, Place
from segue.core.messages import File, Part, ToolCall, ToolResult
from segue.core.prompt.envelopes import Voices
from segue.core.prompt.section import Abilities
from segue.core.prompt.wire import Message, WireForm, messages
from segue.core.transcripts import Draft, Entry, Tip
from segue.core.values import Live, Plain, SessionId, Value
from segue.errors import Invalid


class Usage(Value, frozen=True):
    """The cost of one request to a model, as far as the agent knows; a turn may have several."""

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


class Progress(Value, frozen=True):
    """Sign of what an agent does now, such as a tool that runs: shown until it says more, and never kept."""

    doing: str


class AgentState(Value, frozen=True):
    """A note of an agent's own about a session; yielded, it is kept together with the answer, or with the last error.

    So an agent with a memory of its own yields it once that has what was asked.
    """

    value: Plain
    """Anything that JSON can hold."""
    tip: Tip | None = None
    """The last entry that the agent had seen then: its own answer."""
    moved: bool = False
    """Whether that entry was taken back since, by an undo, a retry or a rewind, or something before it was deleted:
    what the note says of it is void."""


class Titled(Value, frozen=True):
    """A title that an agent found for its session; it counts where nobody has given one."""

    title: str


class SubAgent(Value, frozen=True):
    """Something that is said to or by a sub-agent: a part of the agent to which it gave work by itself.

    It is kept with the answer, as a child session of its own.
    """

    id: str
    """The agent's own name for it, the same for the same one."""
    part: Part
    """What it says or does; `Sent` is what it is asked."""
    name: str = ""
    """Its name for people."""
    above: str = ""
    """The sub-agent that gave it the work; empty if the agent itself did."""


class PutOff(Value, frozen=True):
    """Sign that calls which were told of wait for what people say, and that a later attempt may make them.

    They are journaled without results: an attempt after a kill goes on from them.
    """

    calls: tuple[str, ...]
    """Their ids."""


Event = Part | Usage | Progress | AgentState | PutOff | Titled | SubAgent
"""The events of an answer: text in pieces, thoughts, tools and their results, files, cost, progress, notes, titles, and
what sub-agents say and do."""


class Tool(Value, frozen=True):
    """Something that an agent may ask the gateway to do."""

    name: str
    does: str
    """Its purpose, as the model reads it."""
    parameters: Mapping[str, Plain]
    """Its arguments, as a JSON schema of an object."""


class Tools(Protocol):
    """The tools of an agent in one turn; each call sees only what the turn's person may see."""

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


class ToolServer(Value, frozen=True):
    """The gateway's tools as an MCP server, for a program of an agent's own that takes such."""

    url: str
    token: str
    """For `Authorization: Bearer`. It is for one session, the same in each of its turns, and counts while one runs."""
    command: tuple[str, ...]
    """A program that serves the same by its standard input and output, for agents that don't speak HTTP."""
    environment: Mapping[str, str]
    """The variables that it needs."""


class ReadsFiles(Protocol):
    """A source of the files in a message."""

    async def read(self, file: File) -> bytes:
        """The content of a file; raises `Invalid` if it isn't kept here."""
        ...


@runtime_checkable
class KeepsFiles(Protocol):
    """A source of files that takes more of them: `work.files` is one where the gateway has a place for files."""

    async def keep(self, name: str, media: str, chunks: AsyncIterator[bytes]) -> File:
        """Make a file durable; it is sent when the agent yields it."""
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


class Questions(Protocol):
    """A way to ask the turn's person something in the middle of a turn."""

    async def __call__(self, words: str, choices: Sequence[str] = (), key: str | None = None, allows: str = "") -> str:
        """The person's answer: one of the choices, or any words if there are none. The turn waits, for a day at most.

        The same key gives the same answer, also in a later attempt at the turn; by default it is the question's number
        in the turn. With `allows`, the name of what is to be done, yes and no are the choices, and a yes may be for
        the session or for always: then nobody is asked again. Raises `Unanswered` if nobody answers, but where "no" is
        a choice that is the answer; raises `Invalid` if nobody can be asked that.
        """
        ...


class NoQuestions:
    """For a turn in which nobody can be asked."""

    async def __call__(
        self,
        words: str,  # noqa: ARG002
        choices: Sequence[str] = (),  # noqa: ARG002
        key: str | None = None,  # noqa: ARG002
        allows: str = "",  # noqa: ARG002
    ) -> str:
        """There is nobody to ask."""
        fix = "Say it in the answer: the person's next message is the next turn."
        raise Invalid("question", "nobody can be asked while a turn runs", fix)


class Reserves(Protocol):
    """The budgets that a turn is spent from."""

    async def reserve(self, tokens: int | None = None) -> None:
        """Reserve the next call of a model before it is made: its prompt and its answer take so many tokens at most.

        The turn waits where a budget has no room and the host is asked; raises `OverBudget` if no more is allowed.
        Without a bound the call is made as long as anything is left, and may take more than that. What it took is told
        by `Usage`, and the rest is free again.
        """
        ...


class NoBudget:
    """For a gateway in which nothing is limited."""

    async def reserve(self, tokens: int | None = None) -> None:
        """There is room for everything."""


class Participant(Value, frozen=True):
    """The person of a turn: whoever spoke, or on whose behalf it runs."""

    id: str
    """The same on every platform."""
    name: str
    """As they are called there now; anybody may choose any name."""
    identity: Identity | None = None
    """As whom their platform knows them; None if nobody spoke."""
    host: bool = False
    """Whether they run this gateway."""


class Work(Live, frozen=True):
    """One turn, as an agent gets it."""

    session: SessionId
    turn: int
    context: str
    """The section of the system prompt about where and with whom it talks."""
    transcript: Sequence[Entry]
    """The entries before, oldest first, behind the newest summary if there is one."""
    asked: tuple[Draft, ...]
    """The messages to answer now, each with its author."""
    journal: tuple[Part, ...] = ()
    """Tool calls and results of an earlier attempt that was cut off: they happened, and aren't to be done again.

    A call without a result was put off, and waits for what people say.
    """
    voices: Voices = Voices.ONE
    notes: tuple[str, ...] | None = None
    """The agent's notes about its person when the session began, which end `context`; None where it has no notebook."""
    person: Participant | None = None
    place: Place | None = None
    """The place that it was asked in and is answered in, with its kind, name and topic; None if nobody is told."""
    readers: tuple[Place, ...] = ()
    """The places that speak to the session, the newest first, as the section tells of them: whoever is there reads it.
    Only one of the kind DM has a single reader."""
    abilities: tuple[Abilities, ...] = ()
    """The abilities of the platforms of these places."""
    zone: str = "UTC"
    """The time zone in which times are told."""
    state: AgentState | None = None
    """This agent's last note about this session; None if it never made one."""
    branched: AgentState | None = None
    """Its last note about the session that this one branched off, if it had seen then only what both share; None once
    it has a note about this one."""
    tools: Tools = NoTools()
    tool_server: ToolServer | None = None
    """The same tools over MCP; None where the gateway doesn't serve that."""
    files: ReadsFiles = NoFiles()
    background: Background = NoBackground()
    ask: Questions = NoQuestions()
    budget: Reserves = NoBudget()
    tries: int = 0
    """Earlier attempts at the turn that failed or were cut off: an agent with a memory of its own may have seen it."""

    def messages(self, form: Literal["openai", "anthropic"] = "openai") -> list[Message]:
        """All that was said and done so far, as a library for that API takes it; `context` is for the system prompt.

        A file is named in it (`files.read` has its content) and thoughts of models are left out.
        """
        return messages([*self.transcript, *self.asked], self.journal, self.voices, self.zone, WireForm(form))


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
    """Its task then; the answer is delivered to nobody. Empty: it gets no such turn."""


@runtime_checkable
class KeepsNotes(Protocol):
    """An agent that may keep a notebook of each person, read and written in their private sessions alone."""

    notes: bool
    """Whether it does."""


@runtime_checkable
class ChoosesTools(Protocol):
    """An agent that gets only some of the gateway's tools."""

    gateway_tools: Collection[str] | None
    """Names of tools, or names after a minus that it doesn't get; None for all of them."""


@runtime_checkable
class HasCommands(Protocol):
    """An agent with commands of its own: `/WORD` comes to it as text; what nobody knows is answered by the gateway."""

    commands: Collection[str]
    """The words, in small letters and without the slash."""


class SummedUp(Value, frozen=True):
    """An agent's summary, and its cost."""

    text: str
    usage: tuple[Usage, ...] = ()


@runtime_checkable
class Compresses(Protocol):
    """An agent that knows how much it can be sent, and sums a conversation up in a way of its own."""

    window: int
    """Tokens that a prompt and its answer may have together; 0 if nobody knows."""

    async def summary(self, work: Work, focus: str) -> SummedUp:
        """A summary of the transcript, for the agent itself to go on from; `focus` is what matters."""
        ...
