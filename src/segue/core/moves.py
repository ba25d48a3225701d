"""The heart: every way in which a lane comes to speak to another session.

Law: a move is a value, and `plan(move, view)` says which facts change, or raises `Refused` and nothing changes. It does
no I/O: the store reads the view, locks what the move names, and writes the changes in the same transaction. Every
change of a binding is recorded under its move, so `take_back` undoes any of them by the record alone.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import assert_never

from msgspec import field
from msgspec.structs import replace

from segue.core.lanes import Audience, Lane
from segue.core.transcripts import Ending, Tip
from segue.core.values import Count, PersonId, SessionId, Value
from segue.errors import Refusal, Refused


class Why(StrEnum):
    """Why a binding began or ended."""

    FIRST = "first"
    """Somebody spoke in a lane that had no session."""
    NEW = "new"
    IDLE = "idle"
    DAILY = "daily"
    RESUME = "resume"
    QUOTE = "quote"
    """Somebody replied to a message of that session, and the host lets quotes switch."""
    FORK = "fork"
    HANDOFF = "handoff"
    SPAWN = "spawn"
    RELEASE = "release"
    CLOSE = "close"
    MERGED = "merged"
    """Two lanes turned out to be one person's, or one chat's."""
    AUDIENCE = "audience"
    """Other people came to read the place: a private chat became a group, or another person's."""
    UNDO = "undo"


class Start(StrEnum):
    """The beginning of a child session."""

    FRESH = "fresh"
    FORK = "fork"
    """With its parent's transcript so far."""


class Consent(Enum):
    """Whether the session's owner has said yes to more readers."""

    ASKED = "not given: the move is refused if it would let more people read the session"
    GIVEN = "the owner said yes; the host's naming of a home is theirs"


class Renew(Value, frozen=True, tag="renew"):
    """Start a new session in a lane."""

    lane: Lane
    session: SessionId
    why: Why = Why.NEW


class Resume(Value, frozen=True, tag="resume"):
    """Speak to a session that is already there."""

    lane: Lane
    session: SessionId
    why: Why = Why.RESUME
    consent: Consent = Consent.ASKED


class Fork(Value, frozen=True, tag="fork"):
    """Go on in a new session that begins where another one stands; copies nothing."""

    lane: Lane
    source: SessionId
    session: SessionId
    at: Tip | None = None
    """The entry to go on from; None is where the source stands now."""
    title: str = ""
    consent: Consent = Consent.ASKED


class Handoff(Value, frozen=True, tag="handoff"):
    """Bind another lane to the session that this one speaks to; once settled, a `Release` of the origin ends it."""

    origin: Lane
    destination: Lane
    consent: Consent = Consent.ASKED


class Spawn(Value, frozen=True, tag="spawn"):
    """Start a child session, with a lane of its own or without."""

    parent: SessionId
    session: SessionId
    label: str = ""
    lane: Lane | None = None
    start: Start = Start.FRESH
    ending: Ending = Ending.LASTING


class Release(Value, frozen=True, tag="release"):
    """Let a lane speak to nobody."""

    lane: Lane
    why: Why = Why.RELEASE


Move = Renew | Resume | Fork | Handoff | Spawn | Release


class LaneView(Value, frozen=True):
    """The facts about a lane that a plan needs."""

    bound: SessionId | None = None
    audience: Audience = Audience.ONE
    live: int = 0
    """The number of open sessions begun here, of those in which anything was said."""
    known: frozenset[SessionId] = frozenset()
    """The sessions of the move that this lane has spoken to before."""
    read: frozenset[SessionId] = frozenset()
    """The sessions of the move that whoever reads here has read whole."""


class SessionView(Value, frozen=True):
    """The facts about a session that a plan needs."""

    id: SessionId
    owner: PersonId
    tip: Tip | None = None
    closed: bool = False
    busy: bool = False
    """A turn of it runs or waits."""
    moving: bool = False
    """A handoff of it hasn't settled yet."""
    depth: int = 0
    children: int = 0
    """Its live children."""
    labels: frozenset[str] = frozenset()
    """Their labels."""


class Limits(Value, frozen=True):
    """The edges that the host can set."""

    live_per_lane: Count = field(default=1000, name="max_live_per_lane")
    """Sessions that may be open at once among those begun in one place."""
    depth: Count = 3
    """The deepest level of children of children."""
    children: Count = field(default=16, name="live")
    """Live children of one session."""
    budget: Count = 100
    """Turns in other sessions that may come of one message, children's children included."""


class View(Value, frozen=True):
    """The facts that a move touches, as they stand inside its transaction."""

    actor: PersonId
    lanes: Mapping[Lane, LaneView]
    sessions: Mapping[SessionId, SessionView]
    limits: Limits = Limits()


class Begin(Value, frozen=True):
    """A new session comes to be."""

    session: SessionId
    owner: PersonId
    origin: Lane | None
    tip: Tip | None = None
    parent: SessionId | None = None
    depth: int = 0
    label: str = ""
    ending: Ending = Ending.LASTING
    title: str = ""


class Bind(Value, frozen=True):
    """The lane speaks to this session from now on."""

    lane: Lane
    session: SessionId
    why: Why


class Unbind(Value, frozen=True):
    """The lane speaks to nobody from now on."""

    lane: Lane
    why: Why


Change = Begin | Bind | Unbind


def plan(move: Move, view: View) -> tuple[Change, ...]:
    """The facts that change when this move is made, in order."""
    match move:
        case Renew():
            return _renew(move, view)
        case Resume():
            return _resume(move, view)
        case Fork():
            return _fork(move, view)
        case Handoff():
            return _handoff(move, view)
        case Spawn():
            return _spawn(move, view)
        case Release():
            return _release(move, view)
        case _:
            assert_never(move)


def lanes_of(move: Move) -> tuple[Lane, ...]:
    """The lanes that a move touches."""
    match move:
        case Renew() | Resume() | Fork() | Release():
            return (move.lane,)
        case Handoff():
            return (move.origin, move.destination)
        case Spawn():
            return (move.lane,) if move.lane else ()
        case _:
            assert_never(move)


def in_lanes(move: Move, now: Mapping[Lane, Lane]) -> Move:
    """The same move in the lanes that its lanes go on as."""
    match move:
        case Renew() | Resume() | Fork() | Release():
            return replace(move, lane=now[move.lane])
        case Handoff():
            return replace(move, origin=now[move.origin], destination=now[move.destination])
        case Spawn():
            return replace(move, lane=now[move.lane]) if move.lane else move
        case _:
            assert_never(move)


def sessions_of(move: Move) -> tuple[SessionId, ...]:
    """The sessions that a move names and that must exist."""
    match move:
        case Renew() | Handoff() | Release():
            return ()
        case Resume():
            return (move.session,)
        case Fork():
            return (move.source,)
        case Spawn():
            return (move.parent,)
        case _:
            assert_never(move)


def _renew(move: Renew, view: View) -> tuple[Change, ...]:
    lane = view.lanes[move.lane]
    _settled(move.lane, view)
    # Who only speaks must never be turned away for good: the limit is for those who ask for another session.
    if move.why is Why.NEW and lane.live >= view.limits.live_per_lane:
        raise Refused(Refusal.TOO_MANY_LIVE)
    return (Begin(move.session, view.actor, move.lane), Bind(move.lane, move.session, move.why))


def _resume(move: Resume, view: View) -> tuple[Change, ...]:
    session = _readable(move.session, move.lane, view)
    lane = view.lanes[move.lane]
    if lane.bound == session.id:
        raise Refused(Refusal.ALREADY_THERE)
    if session.closed:
        raise Refused(Refusal.CLOSED)
    if session.moving:
        raise Refused(Refusal.HANDOFF_RUNNING)
    _settled(move.lane, view)
    _readers(session, move.lane, move.consent, view)
    return (Bind(move.lane, session.id, move.why),)


def _fork(move: Fork, view: View) -> tuple[Change, ...]:
    source = _readable(move.source, move.lane, view)
    _readers(source, move.lane, move.consent, view)
    _settled(move.lane, view)
    if view.lanes[move.lane].live >= view.limits.live_per_lane:
        raise Refused(Refusal.TOO_MANY_LIVE)
    begin = Begin(move.session, view.actor, move.lane, tip=move.at or source.tip, parent=source.id, title=move.title)
    return (begin, Bind(move.lane, move.session, Why.FORK))


def _handoff(move: Handoff, view: View) -> tuple[Change, ...]:
    bound = view.lanes[move.origin].bound
    if bound is None:
        raise Refused(Refusal.NOTHING_BOUND)
    session = view.sessions[bound]
    if not _owns(session, view.actor):
        raise Refused(Refusal.NOT_ALLOWED)
    if move.origin == move.destination or view.lanes[move.destination].bound == bound:
        raise Refused(Refusal.SAME_LANE)
    _settled(move.origin, view)
    _settled(move.destination, view)
    if session.busy:
        raise Refused(Refusal.BUSY)
    _readers(session, move.destination, move.consent, view)
    return (Bind(move.destination, bound, Why.HANDOFF),)


def _spawn(move: Spawn, view: View) -> tuple[Change, ...]:
    parent = view.sessions.get(move.parent)
    if parent is None or not _owns(parent, view.actor):
        raise Refused(Refusal.NOT_FOUND)
    if parent.closed:
        raise Refused(Refusal.CLOSED)
    if parent.depth >= view.limits.depth:
        raise Refused(Refusal.TOO_DEEP)
    if parent.children >= view.limits.children:
        raise Refused(Refusal.TOO_MANY_CHILDREN)
    if move.label and move.label in parent.labels:
        raise Refused(Refusal.LABEL_TAKEN)
    if move.lane:
        _settled(move.lane, view)
    begin = Begin(
        move.session,
        parent.owner,
        move.lane,
        tip=parent.tip if move.start is Start.FORK else None,
        parent=parent.id,
        depth=parent.depth + 1,
        label=move.label,
        ending=move.ending,
    )
    return (begin, Bind(move.lane, move.session, Why.SPAWN)) if move.lane else (begin,)


def _release(move: Release, view: View) -> tuple[Change, ...]:
    if view.lanes[move.lane].bound is None:
        raise Refused(Refusal.NOTHING_BOUND)
    _settled(move.lane, view)
    return (Unbind(move.lane, move.why),)


def _settled(lane: Lane, view: View) -> None:
    """Refuse to take a lane away from a session that is being handed off: the handoff ends first."""
    bound = view.lanes[lane].bound
    if bound is not None and view.sessions[bound].moving:
        raise Refused(Refusal.HANDOFF_RUNNING)


def _owns(session: SessionView, actor: PersonId) -> bool:
    return session.owner == actor


def _readable(id: SessionId, lane: Lane, view: View) -> SessionView:
    """The session, if the actor may bring it to this lane: it is theirs, or it was here and is read whole here.

    "Not yours" and "doesn't exist" are one refusal, so that nobody can tell them apart.
    """
    session = view.sessions.get(id)
    if session is None or not (_owns(session, view.actor) or id in view.lanes[lane].known & view.lanes[lane].read):
        raise Refused(Refusal.NOT_FOUND)
    return session


def _readers(session: SessionView, lane: Lane, consent: Consent, view: View) -> None:
    """Refuse a move that lets others read what they haven't read, unless the session's owner said yes.

    This is the rule of readers. Its owner in a private lane of their own is nobody new.
    """
    there = view.lanes[lane]
    own = there.audience is Audience.ONE and _owns(session, view.actor)
    if not own and session.id not in there.read and not (consent is Consent.GIVEN and _owns(session, view.actor)):
        raise Refused(Refusal.NEEDS_YES)


class Made(Value, frozen=True):
    """The effect of a move on one lane, by the record."""

    lane: Lane
    before: SessionId | None
    after: SessionId | None


def take_back(made: tuple[Made, ...], view: View) -> tuple[Change, ...]:
    """Undo a move: every lane that it touched goes back, if it still stands where the move left it.

    Whoever undoes it brings back what was there before, and may bring back no more than by a resume.
    """
    if not made:
        raise Refused(Refusal.NOTHING_TO_UNDO)
    changes: list[Change] = []
    for step in made:
        if view.lanes[step.lane].bound != step.after:
            raise Refused(Refusal.MOVED_SINCE)
        _settled(step.lane, view)
        if step.before is None:
            changes.append(Unbind(step.lane, Why.UNDO))
            continue
        session = _readable(step.before, step.lane, view)
        if session.closed:
            raise Refused(Refusal.CLOSED)
        if session.moving:
            raise Refused(Refusal.HANDOFF_RUNNING)
        _readers(session, step.lane, Consent.ASKED, view)
        changes.append(Bind(step.lane, session.id, Why.UNDO))
    return tuple(changes)
