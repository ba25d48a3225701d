"""Agents for tests: a scripted one, one that accepts messages while it answers, and an echo."""

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
        """Wait until the agent reaches the pause."""
        await self._changes.until(lambda: self._here or None, lambda: "the agent never came to its pause")

    def over(self) -> None:
        """Let the agent continue."""
        self._over.set()

    async def hold(self) -> None:
        """Wait here, as the agent."""
        self._here = True
        self._changes.tell()
        await self._over.wait()


class Slowly(Value, frozen=True):
    """A delay in the agent's answer."""

    seconds: float


class Uses(Live, frozen=True):
    """A tool call with a real effect. It isn't repeated if the journal has its result.

    The gateway carries out the tools that it offers. The test's function carries out any other tool.
    """

    id: str
    name: str
    does: Callable[[], Any] | None = None
    arguments: Plain = None


class Doom(Enum):
    """An answer that ends badly without an error."""

    HANGS = "it never says anything more"
    DIES = "the whole process ends at once, as if it were killed"


Step = str | Part | Usage | Progress | Pause | Slowly | Uses | Exception | Doom
"""One step of a scripted agent, such as text, a tool call, a pause or an error."""


class ScriptedAgent:
    """Follows the test's scripts, one for each attempt, and records every `Work` that it received."""

    def __init__(
        self, *scripts: Step | Iterable[Step], otherwise: Callable[[Work], Iterable[Step]] | None = None
    ) -> None:
        self.works: list[Work] = []
        self.running: list[Work] = []
        """The turns that are being answered."""
        self._scripts: deque[tuple[Step, ...]] = deque()
        self._otherwise = otherwise
        self._changes = Changes()
        for script in scripts:
            self.will(*([script] if isinstance(script, Step) else script))

    def will(self, *steps: Step) -> None:
        """Follow this script in the next attempt that has none yet."""
        self._scripts.append(steps)

    async def asked(self, count: int = 1) -> Work:
        """Wait until the agent has received this many turns; return the last."""
        return await self._changes.until(
            lambda: self.works[count - 1] if len(self.works) >= count else None,
            lambda: f"the agent was asked {len(self.works)} times, not {count}",
        )

    async def idle(self) -> None:
        """Wait until no answer is in progress."""
        await self._changes.until(
            lambda: None if self.running else True, lambda: f"{len(self.running)} answers are still under way"
        )

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        """Follow the next script."""
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
    """A scripted agent that accepts messages while it answers, unless the test refuses them."""

    def __init__(
        self, *scripts: Step | Iterable[Step], otherwise: Callable[[Work], Iterable[Step]] | None = None
    ) -> None:
        super().__init__(*scripts, otherwise=otherwise)
        self.steered: list[tuple[Draft, ...]] = []
        self.takes_more = True

    async def steer(self, work: Work, more: tuple[Draft, ...]) -> bool:
        """Accept messages that arrived meanwhile."""
        if not self.takes_more or work not in self.running:
            return False
        self.steered.append(more)
        self._changes.tell()
        return True

    async def told(self, count: int = 1) -> tuple[Draft, ...]:
        """Wait until the agent was steered this many times; return the last messages."""
        return await self._changes.until(
            lambda: self.steered[count - 1] if len(self.steered) >= count else None,
            lambda: f"the agent was steered {len(self.steered)} times, not {count}",
        )


class EchoAgent:
    """Repeats the question, word by word."""

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        """Repeat the question."""
        for piece in pieces(said(work)):
            yield Text(piece)


def said(work: Work) -> str:
    """Return the text to answer now."""
    return "\n".join(plain_text(draft.parts) for draft in work.asked)


def pieces(text: str) -> list[str]:
    """Split a text into words. Joined, they are the same text."""
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
