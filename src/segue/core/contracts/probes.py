"""Probe points: labelled places where a drill may stop the process."""

from collections.abc import Callable
from enum import StrEnum


class Point(StrEnum):
    """A labelled place where a drill may stop the process."""

    WRITE_BEGUN = "write.begun"
    WRITE_DONE = "write.done"
    """Every statement ran; nothing is committed."""
    WRITE_COMMITTED = "write.committed"
    """Committed; nobody was told."""
    ACCEPT_COMMITTED = "accept.committed"
    """A message is durable; its platform wasn't told."""
    TURN_STARTED = "turn.started"
    TURN_JOURNALED = "turn.journaled"
    """A finished tool call is durable; the agent goes on."""
    TURN_ANSWERED = "turn.answered"
    """The agent is done; nothing of it is written."""
    TURN_FINISHED = "turn.finished"
    """The answer is durable; nobody was sent it."""
    STREAM_OPENED = "stream.opened"
    """There is a delivery to stream into; the platform knows nothing of it."""
    STREAM_SENT = "stream.sent"
    """The platform has a message that isn't final; its id isn't recorded."""
    STREAM_PLACED = "stream.placed"
    SEND_TAKEN = "send.taken"
    """A delivery is held; the platform wasn't called."""
    SEND_PLACED = "send.placed"
    """A placeholder is recorded, to be edited."""
    SEND_CALLED = "send.called"
    """The platform took the message; that isn't recorded."""
    SEND_RECORDED = "send.recorded"
    HANDOFF_CLAIMED = "handoff.claimed"
    """A handoff is driven; nothing was opened for it."""
    HANDOFF_OPENED = "handoff.opened"
    """The platform opened a thread; that isn't recorded."""
    HANDOFF_BOUND = "handoff.bound"
    """The session is bound in the new place and the opening turn waits."""
    MIGRATION_BEGUN = "migration.begun"
    MIGRATION_DONE = "migration.done"
    MIGRATION_COMMITTED = "migration.committed"


Probe = Callable[[Point], None]
