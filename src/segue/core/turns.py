"""Turns: what a session has to do, as it waits, as it runs, and what it leaves behind."""

from collections.abc import Sequence
from enum import Enum, StrEnum
from itertools import takewhile

from segue.core.contracts.agents import Usage
from segue.core.lanes import Address
from segue.core.messages import File, Parts
from segue.core.transcripts import Draft, Tip, TipMove
from segue.core.values import Moment, PersonId, SessionId, Value


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


class Claim(Value, frozen=True):
    """The right to run a session's turns: every write carries its epoch."""

    session: SessionId
    me: str
    epoch: int


class Turn(Value, frozen=True):
    """One piece of work for the agent, waiting or running."""

    session: SessionId
    seq: int
    kind: TurnKind
    lane: str | None
    route: str
    person: str
    name: str
    message: str
    quotes: str
    parts: Parts
    accepted: Moment
    trace: str
    identity: str = ""
    """As whom its person said it; empty if nobody did."""
    cause: str = ""
    """The turn that all of it comes of, if an agent asked for it."""
    awaited: Moment | None = None
    """Until when its answer is kept for whoever asked."""
    stopped_by: str | None = None
    """Who wants it to end."""


class Outcome(StrEnum):
    """What became of a turn."""

    ANSWERED = "answered"
    FAILED = "failed"
    STOPPED = "stopped"
    WITHDRAWN = "withdrawn"


class Streamed(Enum):
    """Whether a turn, or an earlier attempt at it, opened a message to stream into."""

    YES = "yes"
    NO = "no"


class Reply(Value, frozen=True):
    """A message that a turn sends when it is done."""

    address: Address
    text: str
    entry: int
    """Which of the turn's entries it shows, counted from 1; 0 for none."""
    answers: tuple[str, ...] = ()
    file: File | None = None


class Onto(Value, frozen=True):
    """Where a turn moves the tip before it adds its entries, why, and who asked for it."""

    tip: Tip | None
    why: TipMove
    by: str


class TakeBack(Value, frozen=True):
    """A move that a turn takes back, who asked for it, and the id of the record that it was."""

    move: str
    by: PersonId
    id: str


class Ask(Value, frozen=True):
    """A turn that no arrival brings: asked of a session by its id."""

    session: SessionId
    kind: TurnKind
    call: str
    """Its key: asked again, it is the same turn."""
    parts: Parts
    person: str
    """On whose behalf."""
    name: str = ""
    lane: str | None = None
    route: str = ""
    """The key of the address that its answer goes to; empty if nobody is to be told."""
    trace: str = ""
    message: str = ""
    """The platform's id of what is asked again."""
    identity: str = ""
    """As whom its person said it."""
    by: SessionId | None = None
    by_turn: int | None = None
    """The turn whose agent asks, if one does."""
    cause: str = ""
    """The turn that all of it comes of."""
    wait: float | None = None
    """Seconds for which its answer is kept for whoever asks, instead of being delivered."""


class Owed(Value, frozen=True):
    """What a session that was started for one task tells its parent once the task is finished."""

    parent: SessionId
    text: str
    person: str
    home: str
    """Where that goes which has no lane to go to."""
    cause: str
    trace: str


class Asked(Value, frozen=True):
    """The turn that an ask made when it was first run."""

    session: SessionId
    turn: int
    outcome: str | None = None


class Finish(Value, frozen=True):
    """All that a turn leaves behind; it is written together or not at all."""

    turns: tuple[int, ...]
    """The turns that this answers; the first one names it."""
    drafts: tuple[Draft, ...]
    replies: tuple[Reply, ...] = ()
    usage: tuple[Usage, ...] = ()
    outcome: Outcome = Outcome.ANSWERED
    error: str | None = None
    streamed: Streamed = Streamed.NO
    onto: Onto | None = None
    onward: tuple[Ask, ...] = ()
    """What it asks of other sessions."""
    kind: TurnKind = TurnKind.ARRIVAL
    owed: Owed | None = None
    back: TakeBack | None = None


class Run(Value, frozen=True):
    """Turns to be answered as one: a claim on their session, and what somebody had waiting there."""

    held: Claim
    turns: tuple[Turn, ...]
    tip: Tip | None
    """Where the session ends before they are answered."""
    fails: int = 0
    """How often the agent failed at them."""
    deaths: int = 0
    """How often the process died over them."""
    journal: Parts = ()
    """Tool calls that an earlier attempt finished, with their results."""
    streamed: Streamed = Streamed.NO
    owes: SessionId | None = None
    """The parent that waits for the session's result, if it was started for one task."""

    @property
    def name(self) -> int:
        """The number that the turn goes by, the same for every attempt at it."""
        return self.turns[0].seq


class Finished(Value, frozen=True):
    """How a turn left its session."""

    before: Tip | None
    """Where its entries were added."""
    tip: Tip | None
    next: Run | None
    """What runs next; None if nothing waits, and the session was let go."""


def together(waiting: Sequence[Turn]) -> tuple[Turn, ...]:
    """What is answered as one: the first that waits, and all that its person said right after it in the same lane."""
    if not waiting:
        return ()
    first = waiting[0]
    if first.kind is not TurnKind.ARRIVAL:
        return (first,)
    return tuple(takewhile(lambda t: (t.kind, t.person, t.lane) == (first.kind, first.person, first.lane), waiting))
