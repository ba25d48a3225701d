"""Lent tools: those of running turns, for programs of agents that take tools only over MCP.

Law: a token is for one session, and counts here alone, while a turn of that session runs. Nothing of it is kept.
"""

import hmac
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager

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
        self._tools: dict[SessionId, Tools] = {}

    @contextmanager
    def lent(self, session: SessionId, tools: Tools) -> Iterator[ToolServer | None]:
        """Lend the tools of a turn while it runs: by a server as an agent is told of it, if there is one."""
        self._tools[session] = tools
        token, ours = self._token(session) if self.url else "", (sys.executable, "-m", "segue", "mcp")
        try:
            yield ToolServer(self.url, token, ours, {URL: self.url, TOKEN: token}) if self.url else None
        finally:
            if self._tools.get(session) is tools:
                del self._tools[session]

    def tools(self, token: str) -> Tools | None:
        """The tools that a token is for; None if it is no token of this kind."""
        session = SessionId(token.removeprefix(_PREFIX).partition("_")[0])
        ours = hmac.compare_digest(token.encode(errors="replace"), self._token(session).encode(errors="replace"))
        if not token.startswith(_PREFIX) or not ours:
            return None
        if session not in self._tools:
            raise Refused(Refusal.BEARER_ENDED)
        return self._tools[session]

    def _token(self, session: SessionId) -> str:
        return f"{_PREFIX}{session}_{hmac.digest(self._secret, session.encode(errors='replace'), 'sha256').hex()}"
