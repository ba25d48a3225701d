"""Agents: the one that a session named, and what it keeps of the session for itself."""

from segue.changes.people import persons
from segue.changes.rows import each, first, one
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address
from segue.core.settings import GatewaySettings
from segue.core.transcripts import Tip
from segue.core.values import PersonId, SessionId, Value
from segue.database.statements import q


class Answerer(Value, frozen=True):
    """The agent that answers in a session, None if it named none yet, and what that agent kept there, as JSON."""

    agent: str | None
    value: str | None
    tip: Tip | None


class Kept(Value, frozen=True):
    """An agent's note about a session, as JSON, and the entry that it had seen then."""

    value: str
    tip: Tip | None


def wanted(settings: GatewaySettings, address: Address, person: PersonId) -> Transaction[str]:
    """The agent of a session that a person begins in a place, as the settings name it."""
    known = (yield from persons.identities(person)) if settings.agents_of_people and person else ()
    return settings.agent_of(address, [identity.key for identity in known])


def of(session: SessionId, agent: str) -> Transaction[Answerer]:
    """The agent that a session named; what is kept is that one's, or this one's if it named none."""
    return (yield from one(Answerer, q.agent_of(session=session, agent=agent)))


def kept(session: SessionId, agent: str) -> Transaction[Kept | None]:
    """An agent's note about a session."""
    return (yield from first(Kept, q.agent_state(session=session, agent=agent)))


def inherited(session: SessionId, agent: str) -> Transaction[list[Kept]]:
    """An agent's notes about the sessions that one goes on from, the nearest first."""
    return (yield from each(Kept, q.inherited_states(session=session, agent=agent)))


def name(session: SessionId, agent: str) -> Transaction[Answerer]:
    """Let a session name its agent, unless it has."""
    yield q.name_agent(session=session, agent=agent)
    return (yield from of(session, agent))
