"""Sessions and what was said in them: a tree of entries, and tips that point into it.

Law: an entry knows the entry before it and never changes. A session is a pointer, its tip; the path from the root to
the tip is what was said. Undo, retry, rewind and compress move the tip, a fork is a second pointer: none of them writes
or deletes an entry that was there.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from typing import overload

from segue.core.lanes import Lane
from segue.core.messages import Parts, SetAside, Summary, Swap, plain_text
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.errors import Refusal, Refused


class Tip(Value, frozen=True, order=True):
    """An entry's name: the session that wrote it and its number there."""

    session: SessionId
    n: int


def nowhere(session: SessionId) -> Tip:
    """The tip of no entry, for what was known of a session and doesn't stand any more."""
    return Tip(session, 0)


class Role(StrEnum):
    """Whose words an entry holds."""

    PERSON = "person"
    AGENT = "agent"
    GATEWAY = "gateway"
    """A notice, an opening or a summary: neither a person nor the agent said it."""


class Author(Value, frozen=True):
    """The author of an entry; a person has an id and the name shown at the time, an agent perhaps a name."""

    role: Role
    person: str = ""
    name: str = ""


AGENT = Author(Role.AGENT)
GATEWAY = Author(Role.GATEWAY)
IMPORTED = Author(Role.GATEWAY, name="imported")
"""The gateway of an imported transcript, as its file tells it: ours has no name."""


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
    at: Moment | None = None
    """When it was said; None if that is when it is written."""

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
    """The fate of a session that a parent started."""

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
    REDO = "redo"
    RETRY = "retry"
    REWIND = "rewind"
    COMPRESS = "compress"
    HANDOFF = "handoff"
    """A handoff failed: back to before its opening turn."""


class Entries(Sequence[Entry]):
    """Entries of a list that only grows; those that follow share it, so that nobody copies what was there before."""

    __slots__ = ("length", "shared")

    def __init__(self, entries: Iterable[Entry] = (), after: "Entries | None" = None) -> None:
        self.length: int
        self.shared: list[Entry]
        """The list; what is in it beyond these is others'."""
        if after is None:
            self.shared = list(entries)
        else:
            # A list that has grown since goes on for somebody else.
            self.shared = after.shared if after.length == len(after.shared) else after.shared[: after.length]
            self.shared.extend(entries)
        self.length = len(self.shared)

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Entry]:
        return islice(self.shared, self.length)

    @overload
    def __getitem__(self, at: int) -> Entry: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Entry, ...]: ...

    def __getitem__(self, at: int | slice) -> Entry | tuple[Entry, ...]:
        if isinstance(at, slice):
            return tuple(self.shared[n] for n in range(*at.indices(self.length)))
        return self.shared[range(self.length)[at]]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)})"

    def follows(self, other: "Entries") -> bool:
        """Whether these are the other's entries and perhaps some after them."""
        return self.shared is other.shared and self.length >= other.length


class Path(Entries):
    """The transcript up to a tip, and its part for a model; one entry more costs no look at those before it."""

    __slots__ = ("_seen", "agent", "summary", "whole")

    def __init__(self, entries: Sequence[Entry] = (), after: "Path | None" = None) -> None:
        super().__init__(entries, after)
        self.summary: Entry | None
        """The newest entry in which the gateway sums up."""
        self.whole: bool
        """Whether it goes back as far as a model is told: to the first entry, or to what its summary stands for."""
        told = [entry for entry in entries if entry.author.role is Role.GATEWAY]
        self.agent = next((agent for entry in reversed(told) if (agent := swapped(entry)) is not None), None)
        """The agent that was last swapped to; None if none was."""
        if self.agent is None and after is not None:
            self.agent = after.agent
        self._seen: Entries | None
        if after is None or any(_sums_up(entry) for entry in told):
            self._look()
            return
        self.summary, self.whole = after.summary, after.whole
        if any(_sets_aside(entry) for entry in told):
            self._seen = Entries(_heard(entries), after.visible)
        else:
            self._seen = None if after.visible is after else Entries(entries, after.visible)

    @property
    def visible(self) -> Entries:
        """The entries for a model: the newest summary, then all that it doesn't stand for and nobody set aside."""
        return self if self._seen is None else self._seen

    def _look(self) -> None:
        at, summary = next(((n, s) for n in reversed(range(len(self))) if (s := _sums_up(self[n]))), (0, None))
        self.summary, self._seen = None, None
        self.whole = not self or self[0].parent is None
        if summary is not None:
            covered = Tip(SessionId(summary.session), summary.n)
            since = next((n + 1 for n in reversed(range(at)) if self[n].tip == covered), 0)
            self.summary, self.whole = self[at], self.whole or since > 0
            self._seen = Entries(_heard([self[at], *self[since:at], *self[at + 1 :]]))
        elif any(_sets_aside(entry) for entry in self):
            self._seen = Entries(_heard(self))


NOTHING = Path()
"""The empty transcript."""


def swapped(entry: "Entry | Draft") -> str | None:
    """The agent that answers from an entry on; only the gateway says so."""
    if entry.author.role is not Role.GATEWAY:
        return None
    return next((part.agent for part in entry.parts if isinstance(part, Swap)), None)


def _sums_up(entry: Entry) -> Summary | None:
    """The summary of an entry; only the gateway sums up, nobody else's words may hide what was said before them."""
    if entry.author.role is not Role.GATEWAY:
        return None
    return next((part for part in entry.parts if isinstance(part, Summary)), None)


def _sets_aside(entry: Entry) -> bool:
    """Whether the gateway says in an entry that its turn is told to no agent."""
    return entry.author.role is Role.GATEWAY and any(isinstance(part, SetAside) for part in entry.parts)


def _heard(entries: Iterable[Entry]) -> list[Entry]:
    """Entries without those that were set aside: what was asked in a turn before the gateway said so."""
    heard: list[Entry] = []
    for entry in entries:
        while heard and _sets_aside(entry) and _asks(heard[-1]) and _turn(heard[-1]) == _turn(entry):
            heard.pop()
        heard.append(entry)
    return heard


def _asks(entry: Entry) -> bool:
    """Whether an entry is what an agent was to answer."""
    if entry.author.role is Role.GATEWAY:
        return not any(isinstance(part, Summary | Swap | SetAside) for part in entry.parts)
    return entry.author.role is Role.PERSON


def visible(path: Sequence[Entry]) -> list[Entry]:
    """The entries of a path for a model."""
    return list(Path(path).visible)


def exchanges(path: Sequence[Entry]) -> list[int]:
    """The beginnings of exchanges: each a person's entry that starts a turn, or follows somebody else's; and swaps."""
    starts = []
    for i, entry in enumerate(path):
        if entry.author.role is not Role.PERSON:
            if swapped(entry) is not None and _sums_up(entry) is None:
                starts.append(i)
            continue
        before = path[i - 1] if i else None
        if before is None or before.author.role is not Role.PERSON or _turn(before) != _turn(entry):
            starts.append(i)
    return starts


def _turn(entry: Entry) -> tuple[SessionId, int]:
    """The turn that wrote an entry; every session counts its own."""
    return entry.tip.session, entry.turn


def before_exchange(path: Sequence[Entry], count: int) -> Tip | None:
    """The tip after the last `count` exchanges are taken back."""
    starts = exchanges(path)
    if not 1 <= count <= len(starts):
        raise Refused(Refusal.NOTHING_TO_UNDO)
    return path[starts[-count]].parent


def before_answer(path: Sequence[Entry]) -> tuple[Tip | None, list[Entry]]:
    """For a retry: the tip before the last exchange, and what the person had said in it."""
    starts = [n for n in exchanges(path) if path[n].author.role is Role.PERSON]
    if not starts:
        raise Refused(Refusal.NOTHING_TO_RETRY)
    last = path[starts[-1] :]
    # Whoever swapped the agent since wants the new one to answer.
    swaps = [entry for entry in last if swapped(entry) is not None][-1:]
    return last[0].parent, [*swaps, *(entry for entry in last if entry.author.role is Role.PERSON)]


Enough = Callable[[Sequence[Entry]], bool]
"""Whether the newest entries of a path, oldest first, will do."""


def covers_summary(newest: Sequence[Entry]) -> bool:
    """Whether these entries hold a summary and reach back to what it stands for."""
    path = Path(newest)
    return path.summary is not None and path.whole


def back_past(entry: Tip) -> Enough:
    """Whether these entries reach an entry, or go by where it would be: a session numbers its entries as they come."""
    return lambda newest: newest[0].tip.session == entry.session and newest[0].tip.n <= entry.n
