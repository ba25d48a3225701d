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
    def lent(self, session: SessionId, tools: Tools) -> Iterator[None]:
        """Lend the tools of a turn while it runs."""
        self._tools[session] = tools
        try:
            yield
        finally:
            if self._tools.get(session) is tools:
                del self._tools[session]

    def server(self, session: SessionId) -> ToolServer | None:
        """The server as an agent is told of it."""
        if not self.url:
            return None
        token = self._token(session)
        return ToolServer(self.url, token, (sys.executable, "-m", "segue", "mcp"), {URL: self.url, TOKEN: token})

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
