"""The agents of one gateway: which of them answers in a session, and what it kept there."""

import logging
from collections import OrderedDict
from collections.abc import Mapping

import msgspec

from segue.changes.sessions import agents
from segue.changes.sessions.agents import Answerer
from segue.core.contracts.agents import Agent, AgentState, KeepsNotes
from segue.core.lanes import Address, Lane
from segue.core.settings import GatewaySettings
from segue.core.transcripts import Path, Tip, back_past
from segue.core.turns import Run
from segue.core.values import PersonId, SessionId
from segue.runtime.retrying import Patient

log = logging.getLogger(__name__)

_KEPT = 1024
NOWHERE = Address("", "")
"""The place of a turn that nobody asked for in one."""


class Agents:
    """Finds the agent of a session; the first of them answers where none is named."""

    def __init__(self, store: Patient, named: Mapping[str, Agent], settings: GatewaySettings) -> None:
        self._store = store
        self._settings = settings
        self.named = named
        self._default = next(iter(named))
        self.noting = {name: name for name, agent in named.items() if isinstance(agent, KeepsNotes) and agent.notes}
        """The names of those that keep notes."""
        self._known: OrderedDict[SessionId, tuple[int, str | None, str, AgentState | None]] = OrderedDict()
        """By session: the epoch, the swap, the agent and its note as they were then."""

    def clear(self) -> None:
        """Forget what agents kept; it is read again."""
        self._known.clear()

    async def of(
        self, run: Run, swap: str | None = None, origin: Address | None = None
    ) -> tuple[str, AgentState | None]:
        """The name of a session's agent, and what that kept; as this replica knows it, if no other had it since.

        `origin` is the place that names the agent of a turn which nobody asked for in a lane.
        """
        session = run.held.session
        epoch, swapped, name, state = self._known.pop(session, (0, None, "", None))
        if not epoch or run.held.epoch - epoch not in {0, 1} or swapped != swap:
            name, state = await self._read(run, swap, origin)
        self._known[session] = run.held.epoch, swap, name, state
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return name, state

    async def branched(self, run: Run, name: str, path: Path) -> AgentState | None:
        """What an agent kept of the session that this one branched off, if it has seen of that only what both share."""
        notes = [
            note(kept.value, kept.tip) for kept in await self._store.read(agents.inherited, run.held.session, name)
        ]
        return next((state for state in notes if state.tip is not None and not as_seen(state, path).moved), None)

    def keep(self, run: Run, name: str, state: AgentState | None) -> None:
        """Remember what an agent kept."""
        _, swap, _, _ = self._known.get(run.held.session, (0, None, "", None))
        self._known[run.held.session] = run.held.epoch, swap, name, state

    async def _read(self, run: Run, swap: str | None, origin: Address | None) -> tuple[str, AgentState | None]:
        session = run.held.session
        if swap is not None and (swap or self._default) in self.named:
            name = swap or self._default
            kept = await self._store.read(agents.kept, session, name)
            return name, note(kept.value, kept.tip) if kept is not None else None
        first = run.turns[0]
        address = Lane.parse(first.lane).address if first.lane else origin or NOWHERE
        wanted = self._default
        if len(self.named) > 1:
            named = await self._store.read(agents.wanted, self._settings, address, PersonId(first.person))
            wanted = named if named in self.named else self._default
        found: Answerer = await self._store.read(agents.of, session, wanted)
        if found.agent is None and len(self.named) > 1:
            # From here on it is answered by the same one, wherever it goes.
            found = await self._store.write(agents.name, session, wanted)
        name = found.agent if found.agent is not None else wanted
        if name not in self.named:
            log.warning("session %s named the agent %r, which isn't there any more", session, name)
            return self._default, None
        return name, note(found.value, found.tip) if found.value is not None else None


def note(written: str, tip: Tip | None) -> AgentState:
    """A note as it was written: a list of one, like the parts of a message."""
    return AgentState(msgspec.json.decode(written)[0], tip)


def as_seen(state: AgentState, path: Path) -> AgentState:
    """An agent's note, and whether the session goes on from where it was made."""
    if state.tip is None:
        return state
    past = back_past(state.tip)
    for n in reversed(range(len(path))):
        if path[n].tip == state.tip:
            return state
        if past(path[n : n + 1]):
            break
    return AgentState(state.value, state.tip, moved=True)
