"""Finds installed adapters and agents by the entry points of packages. Segue's own are found the same way.

An entry point names a `msgspec.Struct`. Its fields are the keys of a table in segue.toml, and its instance makes the
adapter or the agent. So a package declares its settings and their effect in one place.

    [project.entry-points."segue.adapters"]
    irc = "segue_irc:IrcAccount"            # a platform's name, and the keys of its [irc.ACCOUNT] tables
"""

from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, cast

import msgspec

from segue.core.contracts.adapters import Adapter, Files
from segue.core.contracts.agents import Agent
from segue.errors import Invalid, NotInstalled

ADAPTERS = "segue.adapters"
AGENTS = "segue.agents"


class MakesAdapter(Protocol):
    """The settings of an account, besides those that every account has."""

    def adapter(self, account: str, files: Files) -> Adapter:
        """Return the adapter for this account. It stores the files of messages in `files`."""
        ...


class MakesAgent(Protocol):
    """The settings of an agent, besides its kind."""

    def agent(self) -> Agent:
        """Return the agent."""
        ...


def platforms() -> list[str]:
    """List the platforms with an installed adapter."""
    return sorted(entry_points(group=ADAPTERS).names)


def agents() -> list[str]:
    """List the kinds of installed agents."""
    return sorted(entry_points(group=AGENTS).names)


def adapter_keys(platform: str) -> type[MakesAdapter]:
    """Return the settings type of a platform's accounts."""
    return cast("type[MakesAdapter]", _load(ADAPTERS, platform, "adapter"))


def agent_keys(kind: str) -> type[MakesAgent]:
    """Return the settings type of an agent's kind."""
    return cast("type[MakesAgent]", _load(AGENTS, kind, "agent"))


def _load(group: str, name: str, makes: str) -> type[msgspec.Struct]:
    found = entry_points(group=group, name=name)
    if len(found) != 1:
        packages = ", ".join(sorted(entry.dist.name if entry.dist else entry.value for entry in found))
        raise Invalid(name, f"{len(found)} packages offer this {makes}: {packages}", "Keep one of them installed.")
    [entry] = found
    keys = _import(entry, name)
    if not (isinstance(keys, type) and issubclass(keys, msgspec.Struct) and callable(getattr(keys, makes, None))):
        raise Invalid(name, f"{entry.value} can't make an {makes}", "Its package must name a msgspec.Struct that does.")
    return keys


def _import(entry: EntryPoint, name: str) -> object:
    try:
        return entry.load()
    except ModuleNotFoundError as error:
        if entry.dist and entry.dist.name != "segue":
            fix = f"Install it, or {entry.dist.name} anew."
            raise Invalid(name, f"it needs {error.name}, which isn't installed", fix) from error
        # A platform's library is an extra of the same name.
        raise NotInstalled(name, str(error.name), name) from error
    except AttributeError as error:
        raise Invalid(name, f"{entry.value} isn't there", "Install its package anew.") from error
