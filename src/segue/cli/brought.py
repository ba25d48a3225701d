"""An agent of one's own, by its name in Python: MODULE:NAME."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from segue.agents.given import as_agent
from segue.core.contracts import Agent
from segue.core.values import Value
from segue.errors import Invalid
from segue.runtime.gateway import Gateway

_FIX = "Write MODULE:NAME, such as bot:reply for the function `reply` in bot.py."


class Brought(Value, frozen=True):
    """An agent that is there already, where others are made from keys."""

    brought: Agent

    def agent(self) -> Agent:
        """The agent that answers."""
        return self.brought


def bring(name: str) -> Brought:
    """What goes by a name, in a module that is found from this folder too."""
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise Invalid("agent", f'"{name}" names nothing in a module', _FIX)
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: object = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise Invalid("agent", f"there is no module {error.name} here", _FIX) from error
    except AttributeError as error:
        raise Invalid("agent", f"{module} has no {attribute}", _FIX) from error
    if isinstance(found, Gateway):
        fix = "Name its agent instead: `segue serve` adds the store, the page and the terminal."
        raise Invalid("agent", f"{name} is a gateway with a store of its own", fix)
    return Brought(as_agent(found))  # type: ignore[arg-type]  # what can't answer is refused there
