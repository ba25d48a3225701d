"""A handoff, and its life as one table.

Law: a transition that isn't in TABLE is illegal. DONE, FAILED and CANCELLED have no way out, so a request that ended
can never complete later.
"""

from enum import StrEnum

from segue.core.destinations import shown
from segue.core.lanes import Address, Kind, Lane
from segue.core.transcripts import Tip
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.errors import IllegalStep

ALLOW_READERS = "--allow-readers"
"""At the end of /handoff: whoever reads in the new place may read the session."""
FORMER_ALLOW_READERS = "--yes"
"""Its former name, which still counts."""


class State(StrEnum):
    """The state of a handoff."""

    REQUESTED = "requested"
    CLAIMED = "claimed"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Step(StrEnum):
    """An event of a handoff."""

    CLAIM = "claim"
    """A replica takes it, or takes it over from one that died."""
    COMPLETE = "complete"
    """The agent's first message was really sent."""
    FAIL = "fail"
    """It can't be done, or made no progress in time."""
    CANCEL = "cancel"
    """The person who asked thought better of it."""


TABLE: dict[tuple[State, Step], State] = {
    (State.REQUESTED, Step.CLAIM): State.CLAIMED,
    (State.REQUESTED, Step.FAIL): State.FAILED,
    (State.REQUESTED, Step.CANCEL): State.CANCELLED,
    (State.CLAIMED, Step.CLAIM): State.CLAIMED,
    (State.CLAIMED, Step.COMPLETE): State.DONE,
    (State.CLAIMED, Step.FAIL): State.FAILED,
    (State.CLAIMED, Step.CANCEL): State.CANCELLED,
}
LIVE = frozenset(state for state, _ in TABLE)
"""The states that aren't final: each has a deadline and a sweeper."""


def after(state: State, step: Step) -> State:
    """The state that a step leads to."""
    try:
        return TABLE[state, step]
    except KeyError:
        raise IllegalStep(f"A handoff that is {state} can't {step}.") from None


class HandoffProgress(StrEnum):
    """The step of a handoff."""

    REQUESTED = "requested"
    CLAIMED = "claimed"
    OPENED = "opened"
    """The session is bound in the new place."""
    WRITING = "writing"
    """The agent writes there."""
    SENDING = "sending"
    """Its first words are being sent."""
    ENDED = "ended"


class HandoffRecord(Value, frozen=True):
    """A conversation on its way to another place, or one that went."""

    id: str
    session: SessionId
    origin: Lane
    destination: Address
    """The target that was asked for: a home, or a chat."""
    kind: Kind
    lane: Lane | None
    """The lane that the session is bound to there, once it is."""
    move: str | None
    state: State
    by: PersonId
    requested: Moment
    deadline: Moment | None
    epoch: int
    turn: int | None
    """The opening turn."""
    wrote: Moment | None
    before: Tip | None
    """The session's tip before the opening turn, once that is answered."""
    settled: Moment | None
    error: str | None

    @property
    def progress(self) -> HandoffProgress:
        """Its step."""
        if self.settled is not None:
            return HandoffProgress.ENDED
        if self.lane is None:
            return HandoffProgress.REQUESTED if self.state is State.REQUESTED else HandoffProgress.CLAIMED
        if self.before is not None:
            return HandoffProgress.SENDING
        return HandoffProgress.OPENED if self.wrote is None else HandoffProgress.WRITING

    @property
    def place(self) -> str:
        """Its destination, as people name it."""
        return shown(self.destination.platform, self.destination.account)


class Driven(Value, frozen=True):
    """A handoff that this replica drives: what it writes carries the epoch."""

    handoff: HandoffRecord
    me: str
    epoch: int
    title: str


class Patience(Value, frozen=True):
    """The time that a handoff may take."""

    progress: float = 60.0
    """Seconds between two signs of progress."""
    total: float = 600.0
    """Seconds in all."""


def opening(origin: str, place: str) -> str:
    """The prompt for the agent when a handoff brought the session to a new place."""
    return (
        f"This conversation has just moved from {origin} to {place}, at its person's wish; all that was said before"
        " goes on here. You speak first: greet them here in a sentence or two and say where you two stand."
    )


def deadline(requested: Moment, progressed: Moment, patience: Patience) -> Moment:
    """When a handoff that makes no more progress has failed."""
    return min(progressed + patience.progress, requested + patience.total)
