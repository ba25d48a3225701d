"""Sub-agents: parts of an ACP agent to which it gives work by itself, each telling of it in a session of its own.

Their updates are those of a draft of the protocol, https://agentclientprotocol.com/rfds/subagents, which the library
doesn't know yet. Law: what they do is kept with the turn in which they do it, and what they are allowed is asked of its
person.
"""

from collections.abc import AsyncGenerator, Iterator
from typing import Any

import msgspec

from segue.agents.acp.narration import Narration
from segue.core.contracts.agents import Event, Progress, ReadsFiles, SubAgent, Titled
from segue.core.lanes import clean_name
from segue.core.messages import File, Part, Reasoning, Sent, Text, ToolCall, ToolResult

_MOST = 64
"""Sub-agents of one turn that are kept apart."""
_AT_WORK = ("running", "requires_action")
_LONGEST = 8_000
_TOOL = "subagent"


class Announced(msgspec.Struct, frozen=True, rename="camel", tag_field="sessionUpdate", tag="subagent_update"):
    """There is a sub-agent of the session that it is told to; or something about it has changed."""

    session_id: str
    title: str | None = None
    description: str | None = None
    state: dict[str, Any] | None = None

    @property
    def ended(self) -> bool:
        """Whether it has done what it was asked, or failed to."""
        return self.state is not None and self.state.get("state") not in _AT_WORK


class SessionMessage(msgspec.Struct, frozen=True, rename="camel", tag_field="sessionUpdate", tag="session_message"):
    """A message from one session of the agent's to another, as one of them sees it."""

    content: list[Any] = []
    recipient_session_id: str | None = None

    @property
    def text(self) -> str:
        """Its words."""
        blocks = [block for block in self.content if isinstance(block, dict)]
        return "\n\n".join(text for block in blocks if isinstance(text := block.get("text"), str))


Drafted = Announced | SessionMessage
"""Updates that the library doesn't know."""
DRAFTED = ("subagent_update", "session_message")


class Delegate:
    """One sub-agent."""

    def __init__(self, id: str, above: str, files: ReadsFiles) -> None:
        self.id = id
        self.above = above
        """The sub-agent that gave it the work; empty if the agent itself did."""
        self.title = ""
        self.task = ""
        self.narration = Narration(files)
        self.said = ""
        """The words since it was last asked."""
        self._jobs = 0
        self._at_work = False

    async def take(self, update: Any) -> AsyncGenerator[Event, None]:
        """The events of an update that it told."""
        if isinstance(update, SessionMessage):
            for event in self._message(update):
                yield event
            return
        async for event in self.narration.take(update):
            match event:
                case Titled(title):
                    self.title = title
                case Progress(doing):
                    yield Progress(f"{self.name}: {doing}"[:200])
                case Text() | Reasoning() | ToolCall() | ToolResult() | File():
                    for told in self._does(event):
                        yield told
                case _:
                    """Nothing else is told of it."""

    @property
    def name(self) -> str:
        """Its name for people."""
        return clean_name(self.title) or clean_name(self.task) or "a sub-agent"

    def ends(self) -> Iterator[Event]:
        """It has done its work: what is left of that, and the job with its result, for who gave it."""
        if not self._at_work:
            return
        for event in self.narration.rest():
            if isinstance(event, Reasoning | ToolCall):
                yield self._tells(event)
        self._at_work = False
        call = f"{self.id}/{self._jobs}"
        job = ToolCall(call, _TOOL, {"title": self.name, "task": self.task[:_LONGEST]})
        for part in (job, ToolResult(call, self.said.strip()[:_LONGEST])):
            yield SubAgent(self.above, part) if self.above else part

    def _message(self, message: SessionMessage) -> Iterator[Event]:
        if message.recipient_session_id != self.id:
            yield from self._does(Text(message.text))
            return
        yield from self.ends()
        self.task = message.text
        yield from self._begins()

    def _begins(self) -> Iterator[Event]:
        self._at_work, self._jobs, self.said = True, self._jobs + 1, ""
        yield self._tells(Sent(self.task or self.name))

    def _does(self, part: Part) -> Iterator[Event]:
        if not self._at_work:
            yield from self._begins()
        if isinstance(part, Text):
            self.said += part.text
        yield self._tells(part)

    def _tells(self, part: Part) -> SubAgent:
        return SubAgent(self.id, part, self.name, self.above)


class Delegates:
    """The sub-agents of a turn."""

    def __init__(self, files: ReadsFiles) -> None:
        self._files = files
        self._known: dict[str, Delegate] = {}

    async def take(self, update: Any, by: str) -> AsyncGenerator[Event, None]:
        """The events of an update that one of them told, or that tells of one; `by` is empty for the agent itself."""
        if isinstance(update, Announced):
            for event in self._announce(update, by):
                yield event
        elif (delegate := self._of(by)) is not None:
            async for event in delegate.take(update):
                yield event

    def rest(self) -> Iterator[Event]:
        """What is left once nothing more comes, the last that was given work first."""
        for delegate in reversed(self._known.values()):
            yield from delegate.ends()

    def narration(self, by: str) -> Narration | None:
        """What one of them tells."""
        delegate = self._of(by)
        return delegate.narration if delegate is not None else None

    def _announce(self, told: Announced, by: str) -> Iterator[Event]:
        delegate = self._of(told.session_id, by)
        if delegate is None:
            return
        delegate.title = told.title or delegate.title
        delegate.task = delegate.task or told.description or ""
        if told.ended:
            yield from delegate.ends()
        else:
            yield Progress(delegate.name)

    def _of(self, id: str, above: str = "") -> Delegate | None:
        if id and id not in self._known and len(self._known) < _MOST:
            self._known[id] = Delegate(id, above, self._files)
        return self._known.get(id)
