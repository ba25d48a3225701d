"""A turn that runs here: what is known of it meanwhile, and how it is ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial

from segue.core.contracts import Usage, Work
from segue.core.turns import Run, Turn
from segue.core.values import Moment
from segue.runtime.beginnings import Beginning, draft_of
from segue.runtime.cancelling import surely


class Hung(Exception):
    """The agent said nothing for too long."""


class Quit(Exception):
    """The agent tried to end the process that it runs in."""


class Running:
    """A turn that runs here."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.begun = Beginning((), tuple(draft_of(turn) for turn in run.turns))
        self.answering: asyncio.Task[None] | None = None
        self.stopping = any(turn.stopped_by for turn in run.turns)
        self.dropped = False
        """Whether nobody wants its answer any more."""
        self.silence: asyncio.Timeout | None = None
        """When the agent counts as hung, while it is waited for."""
        self.calls = 0
        """What the gateway does for the agent now."""
        self.work: Work | None = None
        self.told: Moment | None = None
        """When its handoff was last told that it makes progress."""
        self.telling: asyncio.Task[None] | None = None
        self.spent: list[Usage] = []
        """What this try has cost."""
        self.taken_in: list[Turn] = []
        """What its person said meanwhile and the agent took in."""

    @contextmanager
    def calling(self, patience: float) -> Iterator[None]:
        """While the gateway does what the agent asked for, its silence is no sign of trouble."""
        self.calls += 1
        self._listen(None)
        try:
            yield
        finally:
            self.calls -= 1
            if not self.calls:
                self._listen(asyncio.get_running_loop().time() + patience)

    def _listen(self, until: float | None) -> None:
        if self.silence is not None and not self.silence.expired():
            self.silence.reschedule(until)

    def stop(self) -> None:
        """End it; what was said so far is kept."""
        self.stopping = True
        if self.answering is not None:
            self.answering.cancel()


async def until_stopped(live: Running, answer: Callable[[], Awaitable[None]]) -> None:
    """Do it to its end, or until its person ends it."""
    live.answering = asyncio.create_task(surely(partial(_contained, answer)))
    if live.stopping:
        live.answering.cancel()
    try:
        await live.answering
    except asyncio.CancelledError:
        if not live.stopping or cancelled():
            raise


async def _contained(answer: Callable[[], Awaitable[None]]) -> None:
    """Do it, and let nothing of it end the process: a task that is told to exit takes the event loop along."""
    try:
        await answer()
    except SystemExit as error:
        raise Quit("the agent tried to end the process") from error


def cancelled() -> bool:
    """Whether somebody wants the task that runs this to end."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
