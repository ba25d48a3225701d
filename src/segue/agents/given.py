"""Makes agents from objects: an agent, an async function, or an `Agent` of pydantic-ai."""

import inspect
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol, cast

from segue.agents.functions import FunctionAgent
from segue.core.contracts.agents import Agent
from segue.errors import Invalid

_LIBRARY = "pydantic_ai"


class RunsModels(Protocol):
    """An `Agent` of pydantic-ai, recognized without importing that library."""

    def run_stream_events(self, *args: Any, **kwargs: Any) -> Any:
        """Run the agent and yield events."""
        ...


Given = Agent | Callable[..., Any] | RunsModels
"""An agent, an async function, or an `Agent` of pydantic-ai."""


def as_agents(given: Given | Mapping[str, Given]) -> dict[str, Agent]:
    """Return a gateway's agents by name, the default first. A single agent has an empty name."""
    named = given if isinstance(given, Mapping) else {"": given}
    return {name: as_agent(one) for name, one in named.items()}


def as_agent(given: Given) -> Agent:
    """Return the agent for an object."""
    if _of_pydantic_ai(given):
        # Import the library only for a host that uses it: the import is slow.
        pydantic = import_module("segue.agents.models.agent")
        return cast("Agent", pydantic.PydanticAgent(given))
    if not inspect.isclass(given) and callable(getattr(given, "answer", None)):
        return cast("Agent", given)
    if callable(given) and not inspect.isclass(given):
        return FunctionAgent(given)
    what = getattr(given, "__qualname__", type(given).__qualname__)
    raise Invalid("agent", f"{what} can't answer", "Give an async function, a pydantic-ai Agent, or an Agent.")


def _of_pydantic_ai(given: object) -> bool:
    library = sys.modules.get(_LIBRARY)
    return library is not None and isinstance(given, library.agent.AbstractAgent)
