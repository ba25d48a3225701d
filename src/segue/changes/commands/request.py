"""The request and the answer of a command, and the checks that most commands begin with."""

from collections.abc import Sequence

from segue.changes.exchange import quotes, readers
from segue.changes.exchange.readers import Reader
from segue.changes.people.persons import Met
from segue.changes.places import lanes
from segue.changes.places.ways import Way
from segue.changes.sessions import sessions, transcripts
from segue.core.commands import Command, ShownTo
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Audience, Lane, Place, Rules, lane_of
from segue.core.messages import Arrival, File, Parts
from segue.core.people import Standing
from segue.core.titles import label
from segue.core.transcripts import Session
from segue.core.turns import TurnKind
from segue.core.values import Moment, SessionId, Value
from segue.errors import Refusal, Refused

UNTITLED = "an untitled session"
MORE = "Type it in our private chat for the rest."
"""The last line of a list that leaves out what others are not to read."""
_SHORT = 60
_DIGITS = 9


class Request(Value, frozen=True):
    """A command as it came."""

    command: Command
    arrival: Arrival
    met: Met
    lane: Lane
    standing: Standing
    trace: str
    at: Moment
    alone: Way | None = None
    """The way to whoever typed it; None if others would read it."""
    labels: bool = True
    """Whether a session without a title is known by its first question."""

    @property
    def rest(self) -> str:
        """The text after the command."""
        return self.command.rest

    @property
    def private(self) -> bool:
        """Whether nobody else reads the answer."""
        return self.here_alone or (self.alone is not None and self.command.shown_to is ShownTo.ASKER)

    @property
    def here_alone(self) -> bool:
        """Whether nobody else reads what is said where it was typed."""
        return self.arrival.place.audience is Audience.ONE

    @property
    def shown_in(self) -> tuple[Lane, ...]:
        """Where the answer's numbers count: here, and where it is read."""
        return (self.lane, self.alone.lane) if self.alone and self.alone.lane != self.lane else (self.lane,)

    @property
    def reader(self) -> Reader:
        """The readers of the answer."""
        return Reader(() if self.private else (self.lane.address,))


class Answer(Value, frozen=True):
    """The words of a command's answer, and the turn that it asks for."""

    text: str = ""
    ask: Parts = ()
    kind: TurnKind = TurnKind.ARRIVAL
    """The kind of turn that it asks for."""
    session: SessionId | None = None
    """The session that it is asked of; None is the one that the lane speaks to, begun if need be."""
    lane: Lane | None = None
    """The lane that speaks to that session, if it isn't the one that the command was typed in."""
    choices: tuple[str, ...] = ()
    """Commands that answer it."""
    question: str = ""
    """The id of the question that it is."""
    file: File | None = None
    to: Way | None = None
    """The way by which only whoever asked gets it; None for everybody there."""


class Quoted(Value, frozen=True):
    """The message that a command replies to."""

    message: str
    address: Address
    """Its place."""
    lane: Lane
    """The lane whose conversation it is a part of."""


def quoted(request: Request, rules: Rules) -> Transaction[Quoted | None]:
    """The message that a command replies to; where a reply is a thread, the one that the thread hangs on.

    As long as nothing was said in such a thread, that is a message of the conversation around it; after that, one of
    the thread's own if that began there.
    """
    arrival, lane = request.arrival, request.lane
    if arrival.quotes:
        return Quoted(arrival.quotes, lane.address, lane)
    root, outside = lane.address.thread, arrival.place.parent or lane.address.outside
    entry = (yield from quotes.entry(outside, root)) if root else None
    if entry is None:
        return None
    here = yield from sessions.bound(lane)
    if here is not None and not (yield from transcripts.reaches(here.id, entry)):
        return None
    if here is None:
        lane = yield from lanes.now(lane_of(Place(outside, arrival.place.kind), request.met.person.id, rules))
    return Quoted(root, outside, lane)


def bound(request: Request) -> Transaction[Session]:
    """The session that the lane speaks to."""
    session = yield from sessions.bound(request.lane)
    if session is None:
        raise Refused(Refusal.NOTHING_BOUND)
    return session


def own(request: Request) -> Transaction[Session]:
    """The same, if it belongs to whoever asks: being the host is no reason to name or carry away another's."""
    session = yield from bound(request)
    if session.owner != request.met.person.id:
        raise Refused(Refusal.NOT_ALLOWED)
    return session


def reader_of(request: Request, session: SessionId) -> Transaction[Reader]:
    """The readers of what an answer tells of a session.

    Somebody else's is known to whoever asks as far as the place knows it, also where nobody else reads the answer.
    """
    if request.private and not request.here_alone:
        owner = (yield from sessions.known(session)).owner
        return request.reader if owner == request.met.person.id else Reader((request.lane.address,))
    return request.reader


def called(request: Request, session: SessionId) -> Transaction[str]:
    """A session as a person calls it, where others read as they know it."""
    title = yield from readers.title((yield from reader_of(request, session)), session)
    label = "" if title else (yield from label_of(request, session))
    return f"“{title}”" if title else f"the session that began with “{label}”" if label else UNTITLED


def label_of(request: Request, session: SessionId) -> Transaction[str]:
    """The beginning of a session's first question, by which it is known without a title; empty if it isn't shown."""
    asked = (yield from transcripts.question(session)) if request.labels else None
    if asked is None or not (yield from readers.sees((yield from reader_of(request, session)), asked)):
        return ""
    return label(asked.text)


def name(session: Session) -> str:
    """The same, of one that whoever reads the answer speaks to."""
    return f"“{session.title}”" if session.title else UNTITLED


def line_of(word: str) -> int:
    """The line that a number names; one with more digits than any list has lines names none."""
    return int(word) if len(word) <= _DIGITS else 0


def short(text: str) -> str:
    """The beginning of a text, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHORT else f"{flat[: _SHORT - 1]}…"


def around(text: str, words: str) -> str:
    """The part of a text in which the first of some words stands, on one line."""
    flat = " ".join(text.split())
    word = next(iter(words.casefold().split()), "")
    begins = max(0, flat.casefold().find(word) - _SHORT // 2)
    return short(flat) if begins <= 1 else f"…{short(flat[begins:])}"


def listing(lines: Sequence[str], *after: str) -> str:
    """A list and what can be done with it; the empty line keeps that out of the last item where a list is Markdown."""
    return "\n".join([*lines, *([""] if lines else []), *after])


def counted(count: int, one: str, many: str) -> str:
    """A number with its noun."""
    return f"1 {one}" if count == 1 else f"{count:,} {many}"
