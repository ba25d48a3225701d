"""Rows about lanes and sessions that several changes read."""

from segue.core.lanes import Kind
from segue.core.transcripts import Tip
from segue.core.values import Moment, PersonId, SessionId, Value


class Bound(Value, frozen=True):
    """A lane with its place and, if it speaks to one, its session."""

    kind: Kind
    name: str
    topic: str
    session: SessionId | None
    owner: PersonId | None
    used: Moment
    """When the session was last used or came here."""
    head: int
    tail: int
    over: bool
    """The session was found to be over, and nothing but its ending was asked of it since."""
    asked: bool
    """Somebody is asked something there."""


class Locked(Value, frozen=True):
    """A session as a move finds it, held until the transaction ends."""

    id: SessionId
    owner: PersonId
    tip: Tip | None
    closed: bool
    busy: bool
    """A turn of it runs or waits."""
    depth: int


class End(Value, frozen=True):
    """The end of a session, held until the transaction ends."""

    tip: Tip | None
    length: int
