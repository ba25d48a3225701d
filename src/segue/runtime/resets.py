"""Resets: a sweep that finds the sessions that are over and lets the agent save what it wants to remember."""

import asyncio
import logging
from collections.abc import Mapping, Sequence

import msgspec

from segue.changes.people.allowances import Allowing
from segue.changes.people.notes import Notebooks
from segue.changes.sessions import moves, resets, sessions
from segue.core.contracts.agents import Agent, EndsSessions, KeepsNotes
from segue.core.contracts.database import Clock, Ids
from segue.core.messages import Parting, Parts
from segue.core.settings import GatewaySettings
from segue.core.values import PersonId, SessionId
from segue.errors import Refused
from segue.runtime.lifecycle.failures import Failures, ItemGuard
from segue.runtime.retrying import Patient

log = logging.getLogger(__name__)
_BATCH = 100
_NOTE_DOWN = (
    "This session is over. Write down with notes_write what you will want to know in later sessions with this person, "
    "if your notebook doesn't have it. Nobody reads your answer: say only that you are done."
)


class Sweep:
    """Looks at the sessions that may be over; any number of replicas may, none of them ends a session twice."""

    def __init__(
        self,
        store: Patient,
        agents: Mapping[str, Agent],
        settings: GatewaySettings,
        clock: Clock,
        ids: Ids,
        failures: Failures,
    ) -> None:
        self._store = store
        self._guard = ItemGuard("The reset of a session", failures)
        self._allowing = Allowing(settings)
        self._ids = ids
        self._policies = settings.routing.resets
        self._pace = settings.sweep
        self._clock = clock
        agent = next(iter(agents.values()))
        own = (agent.session_ending if isinstance(agent, EndsSessions) else "") or settings.ending
        noting = any(isinstance(agent, KeepsNotes) and agent.notes for agent in agents.values())
        # Without a task of its own the last turn is for notes: where there is no notebook there is nothing to do.
        self._opens = None if own else Notebooks(settings).opens_in
        words = own or (_NOTE_DOWN if noting else "")
        self._words: Parts = (Parting(words),) if words else ()

    async def run(self) -> None:
        """Look until cancelled; where nothing ends by itself, or nobody wants to know, there is nothing to look for."""
        if not self._words or not self._policies.resets:
            return
        await self._store.write(resets.adopt, msgspec.json.encode(self._policies).decode())
        while True:
            await self.once()
            await asyncio.sleep(self._pace)

    async def bound(self, person: PersonId) -> None:
        """Close the longest unused sessions of a person who has more of them open than they may."""
        most = (await self._store.read(self._allowing.of, person)).open_sessions
        for session in await self._store.read(sessions.unused, person, most):
            try:
                await self._store.write(moves.close, session, person, self._ids(), self._clock())
            except Refused as refused:
                log.info("session %s stays open: %s", session, refused)

    async def once(self) -> int:
        """Look at all that may be over by now; returns how many sessions were asked their last turn."""
        asked, opens = 0, self._opens

        async def look(session: SessionId) -> None:
            nonlocal asked
            asked += await self._store.write(resets.look, session, self._policies, self._words, self._clock(), opens)

        async def over(count: int) -> Sequence[SessionId]:
            return await self._store.read(resets.to_look_at, self._clock(), count)

        await self._guard.exhaust(over, _BATCH, look, str)
        return asked
