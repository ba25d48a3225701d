"""One conversation with an AI agent, alive wherever people talk to it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from segue.core.contracts.adapters import Adapter
    from segue.core.contracts.agents import Agent, Tools, Usage, Work
    from segue.core.lanes import Address, Audience, Identity, Kind, Lane, Person, Place, Rules, Sharing, lane_of
    from segue.core.messages import File, Notice, Reasoning, Summary, Text, ToolCall, ToolResult
    from segue.core.moves import Consent, Fork, Handoff, Limits, Move, Release, Renew, Resume, Spawn, Start, Why
    from segue.core.settings import AccountSettings, GatewaySettings
    from segue.core.transcripts import AGENT, Author, Ending, Entry, Role, Session, Tip
    from segue.core.values import PersonId, SessionId
    from segue.errors import Invalid, Refusal, Refused, SegueError, StoreError
    from segue.runtime.gateway import Gateway
    from segue.store import Store, open_store

__version__ = "0.1.0"

__all__ = [
    "AGENT",
    "AccountSettings",
    "Adapter",
    "Address",
    "Agent",
    "Audience",
    "Author",
    "Consent",
    "Ending",
    "Entry",
    "File",
    "Fork",
    "Gateway",
    "GatewaySettings",
    "Handoff",
    "Identity",
    "Invalid",
    "Kind",
    "Lane",
    "Limits",
    "Move",
    "Notice",
    "Person",
    "PersonId",
    "Place",
    "Reasoning",
    "Refusal",
    "Refused",
    "Release",
    "Renew",
    "Resume",
    "Role",
    "Rules",
    "SegueError",
    "Session",
    "SessionId",
    "Sharing",
    "Spawn",
    "Start",
    "Store",
    "StoreError",
    "Summary",
    "Text",
    "Tip",
    "ToolCall",
    "ToolResult",
    "Tools",
    "Usage",
    "Why",
    "Work",
    "lane_of",
    "open_store",
]

_HOMES = (
    "segue.errors",
    "segue.core.values",
    "segue.core.lanes",
    "segue.core.messages",
    "segue.core.transcripts",
    "segue.core.moves",
    "segue.store",
    "segue.core.contracts.adapters",
    "segue.core.contracts.agents",
    "segue.core.settings",
    "segue.runtime.gateway",
)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import a name at its first use: `segue --help` needs none of them."""
        for home in _HOMES if name in __all__ else ():
            module = import_module(home)
            if hasattr(module, name):
                return globals().setdefault(name, getattr(module, name))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
