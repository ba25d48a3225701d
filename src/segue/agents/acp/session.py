"""A session of an ACP agent's own, while its process has it in memory."""

import asyncio
from collections import deque
from typing import Any, Protocol

from acp.helpers import update_agent_message_text
from acp.schema import (
    AgentMessageChunk,
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

_LATE = 1000
"""Updates that are kept for the next turn."""
ConfigOption = SessionConfigOptionSelect | SessionConfigOptionBoolean


class HearsSession(Protocol):
    """A turn that runs in a session of the agent's."""

    def heard(self, update: Any, by: str) -> None:
        """The agent told something, or the sub-agent of this id did."""
        ...

    async def room(self) -> None:
        """Wait until more may be told."""
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
        self.answered = False
        """Whether the last prompt came to its end here: what is told after that is news, and no history."""
        self.late: deque[tuple[Any, str]] = deque(maxlen=_LATE)
        """Told since then."""

    @property
    def busy(self) -> bool:
        """Whether a turn runs in it, or one that was given up comes to its end."""
        return self.turn is not None or (self.settling is not None and not self.settling.done())

    def begin(self, turn: HearsSession) -> None:
        """A turn runs in it from now on, and hears first what was told since the last."""
        self.turn, self.answered = turn, False
        for update, by in self.late:
            turn.heard(update, by)
        if any(isinstance(update, AgentMessageChunk) for update, _ in self.late):
            turn.heard(update_agent_message_text("\n\n"), "")
        self.late.clear()

    def hear(self, update: Any, by: str) -> None:
        """Take in what the agent tells in it."""
        if not by:
            self._note(update)
        if self.turn is not None:
            self.turn.heard(update, by)
        elif self.answered:
            self.late.append((update, by))

    def _note(self, update: Any) -> None:
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
