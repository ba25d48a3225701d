"""Turns: what a session has to do, as it waits, how it begins, as it runs, and what it leaves behind."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import takewhile
from typing import assert_never

from segue.core.contracts.agents import Usage
from segue.core.handoffs import opening
from segue.core.lanes import Address
from segue.core.messages import (
    Aside,
    ChildResult,
    Compress,
    DueWork,
    File,
    Notice,
    Opening,
    Order,
    Outgoing,
    Part,
    Parting,
    Parts,
    Redo,
    Retry,
    Rewind,
    Sent,
    Summary,
    Swap,
    Text,
    Undo,
    plain_text,
)
from segue.core.schedules import asked
from segue.core.transcripts import (
    GATEWAY,
    Author,
    Draft,
    Enough,
    Entry,
    Path,
    Role,
    Source,
    Tip,
    TipMove,
    back_past,
    before_answer,
    before_exchange,
    covers_summary,
    exchanges,
    swapped,
)
from segue.core.values import Live, Moment, PersonId, SessionId, Value
from segue.errors import Refusal, Refused

DEFAULT_AGENT = "default"
"""The name that people call the agent by which has none."""


class TurnKind(StrEnum):
    """Requests that turns make; all wait in one queue per session, so each finds the transcript as the last left it."""

    ARRIVAL = "arrival"
    """Somebody spoke."""
    EDIT = "edit"
    """Somebody changed what they had said while something was being answered: an entry after it, and nothing more."""
    UNDO = "undo"
    """Exchanges are to be taken back."""
    REDO = "redo"
    """Exchanges that an undo took back are to stand again."""
    RETRY = "retry"
    """The last exchange is to be asked again."""
    REWIND = "rewind"
    """The transcript is to end at an earlier entry."""
    SWAP = "swap"
    """Another agent is to answer from here on."""
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


_EVER = 2**31
SUSPECT = 2
"""Deaths of a process after which a turn is tried apart: whatever ran beside it may have been to blame.

Of those with exactly as many, half run at once, so that many innocent ones take few rounds. With more, one runs alone.
"""


class Room(Value, frozen=True):
    """Who may have a slot now."""

    share: int
    """Slots that one person may have at most."""
    taken: Mapping[str, int] = {}
    """Slots that each person has."""
    host: str = ""
    """The person who may have any."""
    only: str = ""
    """The one person for whom the last ones are kept; empty while anybody may have them."""
    suspect: bool = False
    """Whether a turn runs over which processes have died: others of that kind wait, so that it is tried apart."""
    beside: int = 0
    """Turns with `SUSPECT` deaths that may begin beside it all the same."""

    @property
    def below(self) -> int:
        """Deaths from which on a turn has to wait."""
        if not self.suspect:
            return _EVER
        return SUSPECT + 1 if self.beside else SUSPECT

    def takes(self, person: str) -> bool:
        """Whether a turn of this person's may run."""
        if self.only:
            return person == self.only
        return person == self.host or self.taken.get(person, 0) < self.share

    def without(self, run: "Run") -> "Room":
        """The same once this has a slot."""
        person = run.turns[0].person
        taken = {**self.taken, person: self.taken.get(person, 0) + 1}
        is_suspect = run.deaths >= SUSPECT
        beside = max(0, self.beside - 1) if is_suspect else self.beside
        return Room(self.share, taken, self.host, self.only, self.suspect or is_suspect, beside)

    @property
    def full(self) -> list[str]:
        """Persons who have as many as they may."""
        return [person for person, count in self.taken.items() if count >= self.share and person != self.host]


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
    """Outcomes of a turn."""

    ANSWERED = "answered"
    FAILED = "failed"
    STOPPED = "stopped"
    WITHDRAWN = "withdrawn"


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
    """The result of a session that was started for one task, for its parent."""

    parent: SessionId
    text: str
    person: str
    cause: str
    trace: str


class Asked(Value, frozen=True):
    """The turn that an ask made when it was first run."""

    session: SessionId
    turn: int
    outcome: str | None = None


class Beneath(Value, frozen=True):
    """A session in which a sub-agent worked while a turn ran."""

    session: SessionId
    parent: SessionId
    label: str
    drafts: tuple[Draft, ...]


class Finish(Value, frozen=True):
    """All that a turn leaves behind; it is written together or not at all."""

    turns: tuple[int, ...]
    """The turns that this answers; the first one names it."""
    drafts: tuple[Draft, ...]
    replies: tuple[Reply, ...] = ()
    usage: tuple[Usage, ...] = ()
    outcome: Outcome = Outcome.ANSWERED
    error: str | None = None
    onto: Onto | None = None
    onward: tuple[Ask, ...] = ()
    """Turns that it asks of other sessions."""
    kind: TurnKind = TurnKind.ARRIVAL
    owed: Owed | None = None
    back: TakeBack | None = None
    agent: str = ""
    state: str | None = None
    """The agent's own note about the session, as JSON."""
    reserved: bool = False
    """Whether it has reserved from budgets."""
    beneath: tuple[Beneath, ...] = ()
    """The sessions of its sub-agents, parents first."""


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
    streamed: bool = False
    """Whether an earlier attempt opened a message to stream into."""
    owes: SessionId | None = None
    """The parent that waits for the session's result, if it was started for one task."""
    waited: float = 0.0
    """Seconds for which the session waited for a slot."""
    asked: bool = False
    """Whether an earlier attempt asked its person something."""
    bound: str = ""
    """A mark of the lanes that speak to the session: another one whenever others do."""

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
    """The run that is next; None if nothing waits, and the session was let go."""
    hidden: bool = False
    """Something that it wrote was taken back by its author while it ran."""
    taken: tuple[Outgoing, ...] = ()
    """Deliveries that the same replica sends now."""


def together(waiting: Sequence[Turn]) -> tuple[Turn, ...]:
    """The turns that are answered as one: the first, and all that its person said right after it in the same lane."""
    if not waiting:
        return ()
    first = waiting[0]
    if first.kind is not TurnKind.ARRIVAL:
        return (first,)
    return tuple(takewhile(lambda t: (t.kind, t.person, t.lane) == (first.kind, first.person, first.lane), waiting))


MOVES_TIP = frozenset({TurnKind.UNDO, TurnKind.REDO, TurnKind.RETRY, TurnKind.REWIND, TurnKind.COMPRESS})
"""Turns that carry an order."""


class Beginning(Live, frozen=True):
    """A turn that begins, once all before it is answered."""

    path: Path
    """The transcript before it."""
    asked: tuple[Draft, ...] = ()
    onto: Onto | None = None
    """Where the transcript goes on from, if that isn't where it stands."""
    notice: str = ""
    """The gateway's own answer, if the agent isn't asked."""
    focus: str | None = None
    """The focus of a summary of it all; None if none is asked for."""
    swap: str | None = None
    """The agent that what is asked swaps to; None if it doesn't."""


def begin(run: Run, path: Path) -> Beginning:
    """The beginning of a run on the path that it found."""
    first = run.turns[0]
    if first.kind not in MOVES_TIP:
        asked = tuple(draft_of(turn) for turn in run.turns)
        return Beginning(path, asked, swap=swapped(asked[0]) if first.kind is TurnKind.SWAP else None)
    try:
        match order_of(first):
            case Undo() as undo:
                begun = _undo(undo, first.person, path)
            case Redo() as redo:
                begun = _redo(redo, run, path)
            case Retry():
                begun = _retry(first.person, path)
            case Rewind() as rewind:
                begun = _rewind(rewind, run, path)
            case Compress() as compress:
                begun = _compress(compress, path)
            case other:
                assert_never(other)
    except Refused as refused:
        return Beginning(path, notice=str(refused))
    return begun


def order_of(turn: Turn) -> Order:
    """The order that a turn carries which moves the tip; one that waits since it was written as text counts too."""
    text = plain_text(turn.parts)
    match turn.kind:
        case TurnKind.UNDO:
            order: Order = Undo(int(text) if text.isdecimal() else 0)
        case TurnKind.REDO:
            order = Redo()
        case TurnKind.REWIND:
            session, _, n = text.rpartition("/")
            order = Rewind(session, int(n) if n.isdecimal() else 0)
        case TurnKind.COMPRESS:
            order = Compress(text)
        case _:
            order = Retry()
    return next((part for part in turn.parts if isinstance(part, type(order))), order)


def far_enough(turn: Turn) -> Enough | None:
    """How far back a turn looks that moves the tip; None if it goes on from the tip."""
    match order_of(turn) if turn.kind in MOVES_TIP else None:
        case Undo(count):
            # One exchange more than it takes back tells where the oldest of them begins.
            return lambda newest: len(exchanges(newest)) > (count or 1)
        case Redo():
            return bool
        case Retry():
            return _covers_retry
        case Rewind(session, n):
            return back_past(Tip(SessionId(session), n))
        case _:
            return None


def _covers_retry(newest: Sequence[Entry]) -> bool:
    starts = exchanges(newest)
    return len(starts) > 1 and covers_summary(newest[: starts[-1]])


def draft_of(turn: Turn) -> Draft:
    """The words of a turn, with their author."""
    if turn.kind in (TurnKind.ARRIVAL, TurnKind.EDIT):
        author, source = Author(Role.PERSON, turn.person, turn.name), Source(turn.identity, turn.route)
        return Draft(author, turn.parts, source, turn.accepted)
    if turn.kind is TurnKind.SWAP:
        names = [part.agent for part in turn.parts if isinstance(part, Swap)]
        said = Notice(f"{names[0] or DEFAULT_AGENT} answers from here on.")
        return Draft(GATEWAY, (*turn.parts, said), at=turn.accepted)
    author = next((_carried(turn, part) for part in turn.parts if isinstance(part, Sent | ChildResult)), GATEWAY)
    return Draft(author, tuple(_told(turn.kind, part) for part in turn.parts), at=turn.accepted)


def _carried(turn: Turn, said: Sent | ChildResult) -> Author:
    """The author of another session's words, by its label; whoever gets words of the one that began it knows it."""
    if isinstance(said, Sent) and said.own:
        return Author(Role.PERSON, turn.person, turn.name)
    sender = said.sender if isinstance(said, Sent) else said.session
    return Author(Role.GATEWAY, name=said.label or sender)


def with_swap(summary: Summary, agent: str | None) -> Parts:
    """A summary, and the agent that answers after it if that is one which was swapped to before."""
    return (summary,) if agent is None else (summary, Swap(agent))


def _told(kind: TurnKind, part: Part) -> Aside | Notice | Text:
    """Words for an agent in a turn that nobody's message began; only the gateway's own are a notice or an aside."""
    match part:
        case Opening(origin, place):
            return Aside(opening(origin, place))
        case Parting(text):
            return Aside(text)
        case Sent(text, sender, label, child) if sender:
            who = "your child session" if child else "another session,"
            return Text(f"From {who} {_named(sender, label)}:\n\n{text}")
        case ChildResult(text, session, label):
            return Text(f"From your child session {_named(session, label)}:\n\n{text}")
        case DueWork(task, line, zone, due, at, missed):
            return Notice(asked(task, line, zone, due, at, missed))
        case _:
            text = part.text if isinstance(part, Sent | Text) else ""
            # A turn that waits since it was written as text.
            return Aside(text) if kind in (TurnKind.OPENING, TurnKind.ENDING) else Text(text)


def _named(session: str, label: str) -> str:
    return f"“{label}” ({session})" if label else session


def _undo(order: Undo, by: str, path: Path) -> Beginning:
    count = order.count or 1
    to = before_exchange(path, count)
    said = f"Took back the last {count} exchanges." if count > 1 else "Took back the last exchange."
    return Beginning(_upto(path, to), onto=Onto(to, TipMove.UNDO, by), notice=said)


def _redo(order: Redo, run: Run, path: Path) -> Beginning:
    left = Tip(SessionId(order.left_session), order.left_n) if order.left_n else None
    if run.tip != left:
        raise Refused(Refusal.NOTHING_TO_REDO)
    to = Tip(SessionId(order.session), order.n)
    said = "What was undone stands again."
    return Beginning(path, onto=Onto(to, TipMove.REDO, run.turns[0].person), notice=said)


def _retry(by: str, path: Path) -> Beginning:
    to, asked = before_answer(path)
    again = tuple(Draft(entry.author, entry.parts, entry.source, entry.at) for entry in asked)
    return Beginning(_upto(path, to), again, Onto(to, TipMove.RETRY, by), swap=swapped(again[0]))


def _rewind(order: Rewind, run: Run, path: Path) -> Beginning:
    """An entry of the path, or one of the session's own that it has left."""
    to = Tip(SessionId(order.session), order.n)
    kept = _upto(path, to)
    if not kept and to.session != run.held.session:
        raise Refused(Refusal.NO_SUCH_MESSAGE)
    said = "Went back to that message. What came after it is kept: /tree shows it."
    return Beginning(kept, onto=Onto(to, TipMove.REWIND, run.turns[0].person), notice=said)


def _compress(order: Compress, path: Path) -> Beginning:
    if path and any(isinstance(part, Summary) for part in path[-1].parts):
        return Beginning(path, notice="Nothing was said since the last summary.")
    if all(entry.author.role is Role.GATEWAY for entry in path):
        return Beginning(path, notice="Nothing was said yet that could be summed up.")
    return Beginning(path, focus=order.focus.strip())


def _upto(path: Path, tip: Tip | None) -> Path:
    """The path as far as an entry; empty if it isn't on it."""
    return next((Path(path[: n + 1]) for n in reversed(range(len(path))) if path[n].tip == tip), Path())
