"""The keys of [agent] in segue.toml, for kinds that need no library."""

from __future__ import annotations

from segue.agents.builtin import Builtin
from segue.core.values import Value


class BuiltinKeys(Value, frozen=True):
    """The built-in agent has nothing to set."""

    def agent(self) -> Builtin:
        """The agent that answers."""
        return Builtin()
