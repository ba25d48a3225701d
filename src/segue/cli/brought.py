"""A gateway or an agent of one's own, by its name in Python: MODULE:NAME."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from segue.errors import Invalid
from segue.runtime.gateway import Gateway

_FIX = "Write MODULE:NAME, such as bot:reply for the function `reply` in bot.py."


def bring(name: str) -> Gateway:
    """The gateway, or the agent in one, that goes by a name in a module; it is found from this folder too."""
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
    # What can't answer is refused there.
    return found if isinstance(found, Gateway) else Gateway(agent=found)  # type: ignore[arg-type]
