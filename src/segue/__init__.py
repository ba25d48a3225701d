"""One conversation with an AI agent, alive wherever people talk to it."""

from segue.core.lanes import Address, Audience, Identity, Kind, Lane, Person, Place, Rules, Sharing, lane_of
from segue.core.messages import File, Notice, Reasoning, Summary, Text, ToolCall, ToolResult
from segue.core.moves import Consent, Fork, Handoff, Limits, Move, Release, Renew, Resume, Spawn, Start, Why
from segue.core.transcripts import AGENT, Author, Ending, Entry, Role, Session, Tip
from segue.core.values import PersonId, SessionId
from segue.errors import Invalid, Refusal, Refused, SegueError, StoreError
from segue.store.opening import open_store
from segue.store.store import Store

__version__ = "0.1.0"

__all__ = [
    "AGENT",
    "Address",
    "Audience",
    "Author",
    "Consent",
    "Ending",
    "Entry",
    "File",
    "Fork",
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
    "Why",
    "lane_of",
    "open_store",
]
