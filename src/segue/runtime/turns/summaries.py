"""Summaries: an agent sums up what was said, in a way of its own or asked as in any turn; nobody is sent it."""

import asyncio
from collections.abc import AsyncGenerator

from msgspec.structs import replace

from segue.changes.sessions import usage
from segue.core.contracts.agents import Agent, Compresses, SummedUp, Usage, Work
from segue.core.messages import Text
from segue.core.prompt.compaction import compaction_due, request_to_sum_up
from segue.core.transcripts import GATEWAY, Draft, Path
from segue.core.turns import Run
from segue.core.values import SessionId
from segue.errors import SegueError
from segue.runtime.retrying import Patient


class NoSummary(SegueError):
    """The agent was asked to sum up and said nothing."""


class Summaries:
    """Asks an agent for summaries, and knows when one is due."""

    def __init__(self, store: Patient, silence: float) -> None:
        self._store = store
        self._silence = silence

    async def due(self, agent: Compresses, run: Run, path: Path) -> bool:
        """Whether what was said is to be summed up before the next turn, by the size that was last reported."""
        session = run.held.session
        if agent.window <= 0 or not path:
            return False
        size = await self._store.read(usage.last_size, session)
        # What was asked before the last summary says nothing about what is sent after it.
        if size is None or size.turn <= _summed_up_in(session, path):
            return False
        return compaction_due(Usage("", size.tokens), agent.window)

    def helps(self, agent: Agent, run: Run, path: Path) -> bool:
        """Whether a turn that didn't fit may fit after a summary: something was said that none stands for yet."""
        return bool(path) and isinstance(agent, Compresses) and _summed_up_in(run.held.session, path) != run.name

    async def sum_up(self, agent: Agent, work: Work, focus: str) -> SummedUp:
        """A summary of a work's transcript."""
        if isinstance(agent, Compresses):
            async with asyncio.timeout(self._silence):
                made = await agent.summary(work, focus)
        else:
            made = await self._ask(agent, replace(work, asked=(Draft(GATEWAY, (Text(request_to_sum_up(focus)),)),)))
        if not made.text.strip():
            raise NoSummary("The agent was asked for a summary and said nothing.")
        return made

    async def _ask(self, agent: Agent, work: Work) -> SummedUp:
        said = ""
        used: list[Usage] = []
        events = agent.answer(work)
        try:
            while True:
                async with asyncio.timeout(self._silence):
                    event = await anext(events, None)
                if event is None:
                    return SummedUp(said, tuple(used))
                if isinstance(event, Usage):
                    used.append(event)
                elif isinstance(event, Text):
                    said += event.text
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()


def _summed_up_in(session: SessionId, path: Path) -> int:
    """The turn in which a session was last summed up."""
    summary = path.summary
    return summary.turn if summary is not None and summary.tip.session == session else 0
