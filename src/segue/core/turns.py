"""The kinds of work that a session's queue holds."""

from __future__ import annotations

from enum import StrEnum


class TurnKind(StrEnum):
    """What a turn asks for; all wait in one queue per session, so each finds the transcript as the last left it."""

    ARRIVAL = "arrival"
    """Somebody spoke."""
    EDIT = "edit"
    """Somebody changed what they had said while it was being answered: an entry after the answer, and nothing more."""
    UNDO = "undo"
    """Exchanges are to be taken back."""
    RETRY = "retry"
    """The last exchange is to be asked again."""
    REWIND = "rewind"
    """The transcript is to end at an earlier entry."""
    COMPRESS = "compress"
    """A summary is to stand for what was said so far."""
    OPENING = "opening"
    """A handoff brought the session to a new place: the agent speaks first there."""
    ENDING = "ending"
    """The session is about to be reset: the agent may save what it wants to remember."""
    SENT = "sent"
    """Another session's agent, or a script, sent a message."""
    RESULT = "result"
    """A child session has finished its task."""
    SCHEDULED = "scheduled"
    """Scheduled work is due."""
