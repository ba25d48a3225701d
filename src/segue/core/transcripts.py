"""Sessions and what was said in them: a tree of entries, and tips that point into it.

Law: an entry knows the entry before it and never changes. A session is a pointer, its tip; the path from the root to
the tip is what was said. Undo, retry, rewind and compress move the tip, a fork is a second pointer: none of them writes
or deletes an entry that was there.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from segue.core.lanes import Lane
from segue.core.messages import Parts, Summary, plain_text
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.errors import Refusal, Refused


class Tip(Value, frozen=True, order=True):
    """An entry's name: the session that wrote it and its number there."""

    session: SessionId
    n: int


class Role(StrEnum):
    """Whose words an entry holds."""

    PERSON = "person"
    AGENT = "agent"
    GATEWAY = "gateway"
    """A notice, an opening or a summary: neither a person nor the agent said it."""


class Author(Value, frozen=True):
    """Who an entry is by; for a person their id and the name shown at the time."""

    role: Role
    person: str = ""
    name: str = ""


AGENT = Author(Role.AGENT)
GATEWAY = Author(Role.GATEWAY)


class Source(Value, frozen=True):
    """As whom and where somebody said it, as their platform knows both: an identity's key and an address's."""

    identity: str = ""
    address: str = ""


NOWHERE = Source()
"""It wasn't said on a platform, or nobody knows where."""


class Draft(Value, frozen=True):
    """An entry that isn't written yet."""

    author: Author
    parts: Parts
    source: Source = NOWHERE

    @property
    def text(self) -> str:
        """Its words, without tools and thoughts."""
        return plain_text(self.parts)


class Entry(Value, frozen=True):
    """One item of a transcript, never edited or deleted."""

    tip: Tip
    parent: Tip | None
    author: Author
    parts: Parts
    at: Moment
    turn: int = 0
    """The turn that wrote it; 0 when it came in by other means."""
    source: Source = NOWHERE

    @property
    def text(self) -> str:
        """Its words, without tools and thoughts."""
        return plain_text(self.parts)


class Ending(StrEnum):
    """What becomes of a session that a parent started."""

    LASTING = "session"
    """It goes on until somebody closes it."""
    ONE_SHOT = "run"
    """It answers one task and is closed."""


class Session(Value, frozen=True):
    """A durable transcript; it exists whether or not anyone can reach it."""

    id: SessionId
    owner: PersonId
    began: Moment
    used: Moment
    tip: Tip | None = None
    title: str = ""
    parent: SessionId | None = None
    label: str = ""
    closed: Moment | None = None
    origin: Lane | None = None
    """The lane that it was begun in."""


class TipMove(StrEnum):
    """Why a tip moved other than by a new entry."""

    UNDO = "undo"
    RETRY = "retry"
    REWIND = "rewind"
    COMPRESS = "compress"
    HANDOFF = "handoff"
    """A handoff failed: back to before its opening turn."""


def visible(path: Sequence[Entry]) -> list[Entry]:
    """What a model is sent of a path: the newest summary, then all that it doesn't stand for."""
    for at in range(len(path) - 1, -1, -1):
        # Only the gateway sums up: nobody else's words may hide what was said before them.
        summary = next((part for part in path[at].parts if isinstance(part, Summary)), None)
        if summary is not None and path[at].author.role is Role.GATEWAY:
            covered = Tip(SessionId(summary.session), summary.n)
            since = next((i + 1 for i in range(at) if path[i].tip == covered), 0)
            return [path[at], *path[since:at], *path[at + 1 :]]
    return list(path)


def exchanges(path: Sequence[Entry]) -> list[int]:
    """Where each exchange begins: a person's entry that starts a turn, or follows what somebody else wrote."""
    starts = []
    for i, entry in enumerate(path):
        if entry.author.role is not Role.PERSON:
            continue
        before = path[i - 1] if i else None
        if before is None or before.author.role is not Role.PERSON or _turn(before) != _turn(entry):
            starts.append(i)
    return starts


def _turn(entry: Entry) -> tuple[SessionId, int]:
    """Which turn wrote an entry; every session counts its own."""
    return entry.tip.session, entry.turn


def before_exchange(path: Sequence[Entry], count: int) -> Tip | None:
    """The tip after the last `count` exchanges are taken back."""
    starts = exchanges(path)
    if not 1 <= count <= len(starts):
        raise Refused(Refusal.NOTHING_TO_UNDO)
    return path[starts[-count]].parent


def before_answer(path: Sequence[Entry]) -> tuple[Tip | None, list[Entry]]:
    """For a retry: the tip before the last exchange, and what the person had said in it."""
    starts = exchanges(path)
    if not starts:
        raise Refused(Refusal.NOTHING_TO_RETRY)
    last = path[starts[-1] :]
    return last[0].parent, [entry for entry in last if entry.author.role is Role.PERSON]
