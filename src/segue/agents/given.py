"""Agents from what a host brings: an agent, an async function, or an `Agent` of pydantic-ai."""

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
    """An `Agent` of pydantic-ai, as far as it can be told without importing that library."""

    def run_stream_events(self, *args: Any, **kwargs: Any) -> Any:
        """Run it, and tell what happens."""
        ...


Given = Agent | Callable[..., Any] | RunsModels
"""An agent, an async function, or an `Agent` of pydantic-ai."""


def as_agents(given: Given | Mapping[str, Given]) -> dict[str, Agent]:
    """The agents of a gateway by their names, the default one first; a single one has no name."""
    named = given if isinstance(given, Mapping) else {"": given}
    return {name: as_agent(one) for name, one in named.items()}


def as_agent(given: Given) -> Agent:
    """The agent that answers by what was brought."""
    if _of_pydantic_ai(given):
        # Only who brings such an object has the library, and pays for importing it.
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
