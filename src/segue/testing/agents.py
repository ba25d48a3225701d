"""Agents for tests: one that does exactly what it is told, turn by turn, one that can be steered, and an echo."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from enum import Enum
from typing import Any

from segue.core.contracts.agents import Event, Progress, Usage, Work
from segue.core.messages import Part, Text, ToolCall, ToolResult, plain_text
from segue.core.transcripts import Draft
from segue.core.values import Live, Plain, Value
from segue.testing.waits import Changes


class Pause:
    """A point in an answer at which the agent waits for the test."""

    def __init__(self) -> None:
        self._here = False
        self._changes = Changes()
        self._over = asyncio.Event()

    async def reached(self) -> None:
        """Wait until the agent is there."""
        await self._changes.until(lambda: self._here or None, lambda: "the agent never came to its pause")

    def over(self) -> None:
        """Let it go on."""
        self._over.set()

    async def hold(self) -> None:
        """Wait here, as the agent."""
        self._here = True
        self._changes.tell()
        await self._over.wait()


class Slowly(Value, frozen=True):
    """The agent takes its time."""

    seconds: float


class Uses(Live, frozen=True):
    """The agent calls a tool, which really does something; not again if the journal says that it was done.

    A tool that the gateway offers is the gateway's; any other does what the test says.
    """

    id: str
    name: str
    does: Callable[[], Any] | None = None
    arguments: Plain = None


class Doom(Enum):
    """A bad end of an answer, other than by an error."""

    HANGS = "it never says anything more"
    DIES = "the whole process ends at once, as if it were killed"


Step = str | Part | Usage | Progress | Pause | Slowly | Uses | Exception | Doom
"""One thing that a scripted agent does: say a piece of text, or something else, wait, use a tool, fail."""


class ScriptedAgent:
    """Does what a test tells it, one script a try, and keeps every work that it was given."""

    def __init__(
        self, *scripts: Step | Iterable[Step], otherwise: Callable[[Work], Iterable[Step]] | None = None
    ) -> None:
        self.works: list[Work] = []
        self.running: list[Work] = []
        """The works whose answers are under way."""
        self._scripts: deque[tuple[Step, ...]] = deque()
        self._otherwise = otherwise
        self._changes = Changes()
        for script in scripts:
            self.will(*([script] if isinstance(script, Step) else script))

    def will(self, *steps: Step) -> None:
        """Do this in the next try of a turn that has no script yet."""
        self._scripts.append(steps)

    async def asked(self, count: int = 1) -> Work:
        """Wait until it was given so many works, and return the last of these."""
        return await self._changes.until(
            lambda: self.works[count - 1] if len(self.works) >= count else None,
            lambda: f"the agent was asked {len(self.works)} times, not {count}",
        )

    async def idle(self) -> None:
        """Wait until no answer is under way."""
        await self._changes.until(
            lambda: None if self.running else True, lambda: f"{len(self.running)} answers are still under way"
        )

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        """Do the next script."""
        self.works.append(work)
        self.running.append(work)
        self._changes.tell()
        try:
            done = {part.id: part for part in work.journal if isinstance(part, ToolResult)}
            for step in self._script(work):
                async for event in _do(step, done, work):
                    yield event
        finally:
            self.running.remove(work)
            self._changes.tell()

    def _script(self, work: Work) -> Iterable[Step]:
        if self._scripts:
            return self._scripts.popleft()
        if self._otherwise is not None:
            return self._otherwise(work)
        raise AssertionError(f"try {len(self.works)} has no script; asked was {said(work)!r}")


class SteeredAgent(ScriptedAgent):
    """A scripted agent that takes in more while it answers, unless it is told that it is too late."""

    def __init__(
        self, *scripts: Step | Iterable[Step], otherwise: Callable[[Work], Iterable[Step]] | None = None
    ) -> None:
        super().__init__(*scripts, otherwise=otherwise)
        self.steered: list[tuple[Draft, ...]] = []
        self.takes_more = True

    async def steer(self, work: Work, more: tuple[Draft, ...]) -> bool:
        """Take in what was said meanwhile."""
        if not self.takes_more or work not in self.running:
            return False
        self.steered.append(more)
        self._changes.tell()
        return True

    async def told(self, count: int = 1) -> tuple[Draft, ...]:
        """Wait until it was steered so many times, and return what it was told then."""
        return await self._changes.until(
            lambda: self.steered[count - 1] if len(self.steered) >= count else None,
            lambda: f"the agent was steered {len(self.steered)} times, not {count}",
        )


class EchoAgent:
    """Says what it was asked, word by word."""

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        """The same words again."""
        for piece in pieces(said(work)):
            yield Text(piece)


def said(work: Work) -> str:
    """The words that are to be answered."""
    return "\n".join(plain_text(draft.parts) for draft in work.asked)


def pieces(text: str) -> list[str]:
    """A text word by word; joined they are the text again."""
    found: list[str] = []
    for word in text.split(" "):
        found.append(word if not found else f" {word}")
    return [piece for piece in found if piece]


async def _do(step: Step, done: dict[str, ToolResult], work: Work) -> AsyncIterator[Event]:
    match step:
        case str():
            yield Text(step)
        case Pause():
            await step.hold()
        case Slowly(seconds=seconds):
            await asyncio.sleep(seconds)
        case Uses():
            if step.id not in done:
                call = ToolCall(step.id, step.name, step.arguments)
                yield call
                yield await _use(step, call, work)
        case Exception():
            raise step
        case Doom.HANGS:
            await asyncio.Event().wait()
        case Doom.DIES:
            os._exit(137)
        case _:
            yield step


async def _use(step: Uses, call: ToolCall, work: Work) -> ToolResult:
    if step.does is None or any(tool.name == step.name for tool in work.tools.offered):
        return await work.tools.call(call)
    return ToolResult(step.id, step.does())
