"""A session of an ACP agent's own, while its process has it in memory."""

import asyncio
from typing import Any, Protocol

from acp.schema import (
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    CreateElicitationResponse,
    CurrentModeUpdate,
    PermissionOption,
    RequestPermissionResponse,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionModeState,
    ToolCallUpdate,
)

ConfigOption = SessionConfigOptionSelect | SessionConfigOptionBoolean


class HearsSession(Protocol):
    """A turn that runs in a session of the agent's."""

    def heard(self, update: Any, by: str) -> None:
        """The agent told something, or the sub-agent of this id did."""
        ...

    async def permit(self, call: ToolCallUpdate, options: list[PermissionOption], by: str) -> RequestPermissionResponse:
        """The agent asks whether it may do something, or a sub-agent does."""
        ...

    async def elicit(self, message: str, mode: Any) -> CreateElicitationResponse:
        """The agent wants to know something."""
        ...


class AcpSession:
    """A session of the agent's, as far as this process has it in memory."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.options: list[ConfigOption] = []
        self.modes: SessionModeState | None = None
        self.commands: tuple[str, ...] = ()
        self.turn: HearsSession | None = None
        self.settling: asyncio.Task[None] | None = None
        """The end of a turn that was given up, or of the session itself; nothing is asked before it has come."""

    @property
    def busy(self) -> bool:
        """Whether a turn runs in it, or one that was given up comes to its end."""
        return self.turn is not None or (self.settling is not None and not self.settling.done())

    def told(self, update: Any) -> None:
        """Take in what the agent says of it."""
        match update:
            case AvailableCommandsUpdate():
                names = (command.name.removeprefix("/").casefold() for command in update.available_commands)
                self.commands = tuple(names)
            case ConfigOptionUpdate():
                self.options = list(update.config_options)
            case CurrentModeUpdate() if self.modes is not None:
                self.modes = self.modes.model_copy(update={"current_mode_id": update.current_mode_id})
            case _:
                """It is the turn's alone."""

    def opened(self, told: Any) -> None:
        """Take in what the agent says of a session when it is opened."""
        self.options = list(getattr(told, "config_options", None) or [])
        self.modes = getattr(told, "modes", None)
