"""Lent tools: those of running turns, for programs of agents that take tools only over MCP.

Law: a token is for one session and one agent, and counts here alone, while a turn of that agent runs there. Nothing of
it is kept.
"""

import hmac
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

from segue.core.contracts.agents import Tools, ToolServer
from segue.core.values import SessionId
from segue.errors import Refusal, Refused

TOKEN = "SEGUE_TOKEN"  # noqa: S105 -- the name of a variable
URL = "SEGUE_MCP_URL"
_PREFIX = "segue_turn_"


class Lent:
    """Lends the tools of turns that run here."""

    def __init__(self) -> None:
        self.url = ""
        """The address at which they are served; empty if they aren't."""
        self._secret = secrets.token_bytes(32)
        self._tools: dict[SessionId, tuple[str, Tools]] = {}
        """By session: a mark of the agent whose turn runs there, and the tools of that turn."""

    @contextmanager
    def lent(self, session: SessionId, agent: str, tools: Tools) -> Iterator[ToolServer | None]:
        """Lend the tools of a turn while it runs: by a server as an agent is told of it, if there is one."""
        lent = self._tools[session] = sha256(agent.encode()).hexdigest()[:16], tools
        token, ours = self._token(session, lent[0]) if self.url else "", (sys.executable, "-P", "-m", "segue", "mcp")
        try:
            yield ToolServer(self.url, token, ours, {URL: self.url, TOKEN: token}) if self.url else None
        finally:
            if self._tools.get(session) is lent:
                del self._tools[session]

    def tools(self, token: str) -> Tools | None:
        """The tools that a token is for; None if it is no token of this kind."""
        session, _, rest = token.removeprefix(_PREFIX).partition("_")
        agent = rest.partition("_")[0]
        ours = self._token(SessionId(session), agent)
        same = hmac.compare_digest(token.encode(errors="replace"), ours.encode(errors="replace"))
        if not token.startswith(_PREFIX) or not same:
            return None
        lent = self._tools.get(SessionId(session))
        if lent is None or lent[0] != agent:
            raise Refused(Refusal.BEARER_ENDED)
        return lent[1]

    def _token(self, session: SessionId, agent: str) -> str:
        name = f"{session}_{agent}"
        return f"{_PREFIX}{name}_{hmac.digest(self._secret, name.encode(errors='replace'), 'sha256').hex()}"
