"""The command about who answers: /agent."""

from collections.abc import Sequence

from segue.changes.commands.request import Answer, Request, bound
from segue.changes.sessions import agents, transcripts
from segue.core.contracts.database import Transaction
from segue.core.messages import Swap
from segue.core.people import Standing
from segue.core.settings import NO_ACCOUNT, GatewaySettings
from segue.core.transcripts import Entry, Path, Session, covers_summary
from segue.core.turns import DEFAULT_AGENT, TurnKind
from segue.errors import Refusal, Refused


class AgentCommand:
    """Lists the agents, and swaps the one of a session; the conversation stays."""

    def __init__(self, names: Sequence[str], settings: GatewaySettings) -> None:
        self._names = names
        self._settings = settings

    def agent(self, request: Request) -> Transaction[Answer]:
        known = {name or DEFAULT_AGENT: name for name in self._may(request)}
        session = yield from bound(request)
        now = yield from self._answers(session, request)
        if not request.rest:
            lines = [f"{name}{', which answers here' if known[name] == now else ''}" for name in known]
            if now not in known.values():
                lines = [f"{now or DEFAULT_AGENT}, which answers here", *lines]
            return Answer("\n".join([*lines, "/agent NAME lets another one answer; the conversation stays."]))
        wanted = next((name for name in known if name.casefold() == request.rest.casefold()), None)
        if wanted is None:
            raise Refused(Refusal.NO_AGENT)
        if known[wanted] == now:
            return Answer(f"{wanted} answers here already.")
        return Answer(ask=(Swap(known[wanted]),), kind=TurnKind.SWAP, session=session.id)

    def _may(self, request: Request) -> list[str]:
        """The agents that somebody may choose: the host any, others what the account lists, or else the default one."""
        address = request.lane.address
        listed = self._settings.accounts.get((address.platform, address.account), NO_ACCOUNT).agents
        if request.standing is Standing.HOST:
            return [*self._names]
        return [name for name in self._names if (name or DEFAULT_AGENT) in listed] if listed else [*self._names[:1]]

    def _answers(self, session: Session, request: Request) -> Transaction[str]:
        """The agent that answers in a session now."""
        swapped = Path((yield from transcripts.path(session.tip, _enough))).agent
        if swapped is not None:
            return swapped
        own = yield from agents.wanted(self._settings, request.lane.address, request.met.person.id)
        named = (yield from agents.of(session.id, own)).agent
        return named if named is not None else own


def _enough(newest: Sequence[Entry]) -> bool:
    return covers_summary(newest) or Path(newest).agent is not None
