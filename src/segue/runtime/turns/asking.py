"""Asking: the agent of a turn wants to know something, and the turn waits for the answer without a slot.

Law: the agent goes on only with an answer that is committed. The wait is in memory, the question is not: after a kill
the turn runs again from its start, asks under the same key and gets the same answer.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from segue.changes.exchange import questions
from segue.changes.exchange.asking import Asks
from segue.changes.exchange.questions import Asking
from segue.core.questions import YES, Question, QuestionState
from segue.core.turns import Run
from segue.core.values import PersonId
from segue.errors import Unanswered
from segue.runtime.parts import Ground
from segue.runtime.turns.running import Running

_SETTLED = 1.0
"""Seconds of waiting after which a process that dies didn't die because of the turn."""
_LONGEST = 60.0
_INSTANT = 0.01

Waiting = Callable[[Run], AbstractAsyncContextManager[None]]


class Askers:
    """Asks what turns want to know."""

    def __init__(self, ground: Ground, waiting: Waiting) -> None:
        self._ground = ground
        self._waiting = waiting
        self._asks = Asks(ground.adapters, ground.settings)

    def wanted(self, live: Running, key: str, words: str, choices: Sequence[str], allows: str) -> Asking:
        """A question that a turn wants to ask, checked."""
        return self._asks.wanted(live.governed, key, words, choices, allows)

    async def ask(self, live: Running, asking: Asking) -> str:
        """Ask, and wait for the answer."""
        store, run, agent = self._ground.store, live.run, live.agent_name
        person = PersonId(run.turns[0].person)
        session = run.held.session
        may = await store.read(questions.allowed, person, agent, asking.allows, session) if asking.allows else False
        if may:
            return YES
        with live.asking(self._ground.settings.turn_silence):
            id, at = self._ground.ids(), self._ground.clock()
            question = await store.write(self._asks.ask, run, agent, asking, id, at)
            async with self._waiting(run):
                question = await self._over(live, question)
        answer = questions.decided(question)
        if answer is None:
            raise Unanswered(question.outcome)
        return answer

    async def _over(self, live: Running, question: Question) -> Question:
        """Wait until a question has come to its end; returns it as it stands then."""
        store, clock, patience = self._ground.store, self._ground.clock, _SETTLED
        while question.state is QuestionState.OPEN:
            left = question.deadline - clock()
            expired = await store.write(questions.expire, clock()) if left < 0 else 0
            if not expired and not await self._told(live, min(patience, max(left, 0.0) + _INSTANT)):
                if patience == _SETTLED:
                    await store.write(questions.wait, live.run.held, question.id)
                # Being told is the rule: to look is for when a hint got lost.
                patience = min(2 * patience, _LONGEST)
            question = await store.read(questions.read, question.id)
        return question

    async def _told(self, live: Running, seconds: float) -> bool:
        """Wait for somebody to answer; whether something changed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await live.changed.wait()
        changed = live.changed.is_set()
        live.changed.clear()
        return changed


@dataclass
class TurnAsker:
    """Asks the person of one turn."""

    askers: Askers
    live: Running
    count: int = 0
    """Questions so far."""

    async def __call__(self, words: str, choices: Sequence[str] = (), key: str | None = None, allows: str = "") -> str:
        """The person's answer."""
        self.count += 1
        key = f"{self.count}" if key is None else f"key/{key}"
        return await self.askers.ask(self.live, self.askers.wanted(self.live, key, words, choices, allows))
