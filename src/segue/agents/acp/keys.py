"""The keys of an agent with kind = "acp": a program that speaks the Agent Client Protocol on its standard streams.

    [agents.claude]
    kind = "acp"
    command = ["claude-agent-acp"]
    folder = "."                        # or folders = "work": a folder of its own for each session
    env = { ANTHROPIC_API_KEY = "env:ANTHROPIC_API_KEY" }

Only keys live here: every command reads them, and none but a gateway pays for importing the library.
"""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, cast

from msgspec import Meta, field

from segue.core.contracts.agents import Agent
from segue.core.settings import check_tools
from segue.core.values import Secret, Value
from segue.errors import Invalid, NotInstalled

_LIBRARY = "acp"


class AcpKeys(Value, frozen=True):
    """A program, where it works, and how long it may take."""

    command: tuple[str, ...]
    """The program and its arguments; no shell reads them."""
    folder: Path | None = None
    """The folder in which it works."""
    folders: Path | None = None
    """The folder in which each session has a folder to work in."""
    env: Mapping[str, Secret] = field(default_factory=dict)
    """Variables of its environment, by reference, beside the few that every program needs."""
    tools: tuple[str, ...] | None = None
    """The gateway's tools that it gets: names, or names after a minus that it doesn't get; None for all of them."""
    commands: tuple[str, ...] = ()
    """Its slash commands that are known before it has told them."""
    agent_commands: tuple[str, ...] = ()
    """People beside the host who may use its own slash commands, as PLATFORM.ACCOUNT/USER."""
    open: Annotated[int, Meta(ge=1, le=10_000)] = 20
    """Sessions that it has open at once; the longest unused one is closed, and opened again when it is gone on with."""
    start: Annotated[float, Meta(ge=1, le=3600)] = 60.0
    """Seconds in which it has to start, and to open a session."""
    settle: Annotated[float, Meta(ge=0.1, le=600)] = 10.0
    """Seconds in which it has to end a turn that was stopped; after that it gets no more of them."""

    def __post_init__(self) -> None:
        if not self.command or not self.command[0].strip():
            raise Invalid("command", "it names no program", 'Write it as a list: command = ["claude-agent-acp"]')
        if (self.folder is None) == (self.folders is None):
            problem = "there are two" if self.folder else "it is missing"
            fix = 'Write folder = "." to work in one folder, or folders = "work" for one of each session.'
            raise Invalid("folder", problem, fix)
        if self.folder is not None and not self.folder.is_dir():
            raise Invalid("folder", f"{self.folder} is no folder", "Make it, or name another.")
        check_tools(self.tools)
        if find_spec(_LIBRARY) is None:
            raise NotInstalled("kind", _LIBRARY, "acp")

    def agent(self) -> Agent:
        """The agent that answers; here the library is imported."""
        return cast("Agent", import_module("segue.agents.acp.agent").AcpAgent(self))

    async def started(self) -> str:
        """Start the program and end it; returns what it can."""
        return cast("str", await import_module("segue.agents.acp.agent").AcpAgent(self).started())

    async def tried(self) -> str:
        """The same, and open a session with it, which it may refuse to whoever isn't signed in."""
        return cast("str", await import_module("segue.agents.acp.agent").AcpAgent(self).tried())
