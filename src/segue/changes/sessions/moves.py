"""Moves, made: lock what a move names, show it to the plan, write the changes under the move's id.

Locks are taken in one order, lanes by key and then sessions by id, so that two moves never wait for each other.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import assert_never

from segue.changes.people import actors
from segue.changes.places import lanes
from segue.changes.rows import each, first, one
from segue.changes.sessions import readings, titles, transcripts
from segue.changes.sessions.rows import Bound, Locked
from segue.core.contracts.database import Transaction
from segue.core.contracts.wakes import Hearers, Topic, Wake
from segue.core.lanes import Audience, Lane, Place, clean_place
from segue.core.moves import (
    Begin,
    Bind,
    Change,
    Fork,
    LaneView,
    Limits,
    Made,
    Move,
    SessionView,
    Unbind,
    View,
    Why,
    in_lanes,
    lanes_of,
    plan,
    sessions_of,
    take_back,
)
from segue.core.titles import new_title
from segue.core.transcripts import Session, Tip
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q
from segue.database.transactions import Moved
from segue.errors import Invalid, Refusal, Refused


class Moving(Value, frozen=True):
    """A move that was made: its id, and what it did to each lane."""

    id: str
    made: tuple[Made, ...]
    session: SessionId | None
    """The session that it began or brought."""


class Speaking(Value, frozen=True):
    """A lane, by its key, and the session that it speaks to."""

    lane: str
    session: SessionId


class LastUse(Value, frozen=True):
    """A lane's session, since when, and when somebody last spoke there."""

    session: SessionId
    since: Moment
    spoke: Moment | None


class Ended(Value, frozen=True):
    """A binding that ended: the session, and when."""

    session: SessionId
    until: Moment


class Recorded(Value, frozen=True):
    """The kind of a move, and the session that it was about."""

    kind: str
    session: SessionId | None


class Last(Value, frozen=True):
    """The newest move of a lane that wasn't taken back."""

    id: str
    kind: str
    at: Moment
    why: Why | None
    """Why the lane speaks to what the move brought it to; None if it let the lane go."""
    session: SessionId | None
    """The session that it brought the lane to."""


def see(place: Place, person: str, at: Moment) -> Transaction[Lane]:
    """Remember a place, and the lane that is all of it or one person's share."""
    place = clean_place(place)
    address = place.address.key
    lane = Lane(place.address, person)
    yield q.see_address(
        address=address,
        kind=place.kind,
        name=place.name,
        topic=place.topic,
        opened_for="" if place.opened else None,
        parent=place.parent.key if place.parent else None,
        at=at,
    )
    yield q.see_lane(lane=lane.key, address=address, person=person, at=at)
    return lane


class AtWork(Enum):
    """The fate of a session's turns when it is closed."""

    REFUSED = "while one runs or waits, the session isn't closed"
    STOPPED = "the one that runs is stopped, and those that wait are taken back"


def check(move: Move, actor: PersonId, limits: Limits) -> Transaction[None]:
    """Raise `Refused` if a move can't be made now; nothing changes either way."""
    actor = yield from actors.hold(actor)
    move = yield from _in_lanes_of_now(move)
    plan(move, (yield from _view(lanes_of(move), sessions_of(move), actor, limits, at=_at(move))))


def make(move: Move, actor: PersonId, limits: Limits, id: str, at: Moment, within: str = "") -> Transaction[Moving]:
    """Make a move, or raise `Refused` and change nothing; `within` is the handoff that it is a step of."""
    actor = yield from actors.hold(actor)
    move = yield from _in_lanes_of_now(move)
    view = yield from _view(lanes_of(move), sessions_of(move), actor, limits, within, _at(move))
    changes = plan(move, view)
    if isinstance(move, Fork) and move.at and not (yield from transcripts.reaches(move.source, move.at)):
        raise Refused(Refusal.NOT_FOUND)
    kind = type(move).__struct_config__.tag
    return (yield from _apply(str(kind), changes, view, id, at))


def undo(move: str, actor: PersonId, limits: Limits, id: str, at: Moment) -> Transaction[Moving]:
    """Take a move back, if every lane that it touched still stands where it left it; what it closed opens again."""
    actor = yield from actors.hold(actor)
    record = yield from first(Recorded, q.move(move=move))
    # Only `persons.part` and `merges.part` can undo a merge: more than lanes came together in it. Nothing takes new
    # readers away again.
    if record is None or record.kind in {"merge", "part", "audience"} or not (yield q.undo_move(move=move, at=at)):
        raise Refused(Refusal.NOTHING_TO_UNDO)
    made = yield from made_by(move)
    touched, before = [step.lane for step in made], [step.before for step in made if step.before]
    view = yield from _view(touched, before, actor, limits)
    closed = record.session if record.kind == "close" else None
    if closed:
        yield from reopen(closed, actor, limits)
        view = yield from _view(touched, before, actor, limits)
    changes = take_back(made, view) if made or not closed else ()
    return (yield from _apply("undo", changes, view, id, at))


def made_by(move: str) -> Transaction[tuple[Made, ...]]:
    """The effect of a move on each lane, by the record; a lane that has become another since is named by that."""
    started = yield from each(Speaking, q.move_started(move=move))
    ended = yield from each(Speaking, q.move_ended(move=move))
    before = {side.lane: side.session for side in ended}
    after = {side.lane: side.session for side in started}
    made: list[Made] = []
    for key in sorted(before.keys() | after.keys()):
        lane = yield from lanes.now(Lane.parse(key))
        if all(lane != step.lane for step in made):
            made.append(Made(lane, before.get(key), after.get(key)))
    return tuple(made)


class Spoke(Value, frozen=True):
    """A session that a lane spoke to, and the move by which it did."""

    session: SessionId
    move: str
    closed: bool
    parted: bool
    """It turned out to be another chat's."""


def spoke_before(lane: Lane, move: str) -> Transaction[Spoke | None]:
    """The session that a lane spoke to before a move, but for what turned out to be another chat's."""
    spoke = yield from first(Spoke, q.spoke_before(lane=lane.key, move=move))
    while spoke is not None and spoke.parted:
        spoke = yield from first(Spoke, q.spoke_before(lane=lane.key, move=spoke.move))
    return spoke


def last_move(lane: Lane) -> Transaction[Last | None]:
    """The newest move of a lane that wasn't taken back."""
    return (yield from first(Last, q.last_move(lane=(yield from lanes.now(lane)).key)))


class LastUndo(Value, frozen=True):
    """The undo that was a lane's newest move, and the session that it left."""

    session: SessionId
    at: Moment


def last_undo(lane: Lane) -> Transaction[LastUndo | None]:
    """The newest move of a lane, if it took another back and left a session by that."""
    return (yield from first(LastUndo, q.last_undo(lane=(yield from lanes.now(lane)).key)))


def close(
    session: SessionId,
    actor: PersonId,
    id: str,
    at: Moment,
    at_work: AtWork = AtWork.REFUSED,
    beside: Sequence[SessionId] = (),
    asked_in: Lane | None = None,
) -> Transaction[Moving]:
    """Close a session: it takes no more turns, its lanes let go of it, its transcript stays.

    `beside` are sessions that the same transaction goes on to change: all are locked together. `asked_in` is the lane
    in which it can be taken back, whichever lanes speak to the session.
    """
    actor = yield from actors.hold(actor)
    bound = yield from each(Lane, q.lanes_bound(session=session))
    view = yield from _view(bound, [session, *beside], actor, Limits())
    found = view.sessions.get(session)
    if found is None or found.owner != actor:
        raise Refused(Refusal.NOT_FOUND)
    if found.closed:
        raise Refused(Refusal.CLOSED)
    if found.moving:
        raise Refused(Refusal.HANDOFF_RUNNING)
    if found.busy and at_work is AtWork.REFUSED:
        raise Refused(Refusal.BUSY)
    if found.busy and not (yield from _stop(session, actor, at)):
        yield q.nothing_waits(session=session)
    # The session is locked now: no lane comes to speak to it any more, but one may have come before.
    if (yield from each(Lane, q.lanes_bound(session=session))) != bound:
        raise Moved
    yield q.close_session(session=session, at=at)
    here = (yield from lanes.now(asked_in)) if asked_in else None
    return (yield from _apply("close", [Unbind(lane, Why.CLOSE) for lane in bound], view, id, at, session, here))


def _stop(session: SessionId, actor: PersonId, at: Moment) -> Transaction[bool]:
    """End what runs in a session and take back what waits; returns whether anything runs."""
    yield q.withdraw(session=session, at=at)
    return bool((yield q.stop_all(session=session, person=actor))) or bool((yield q.running(session=session)))


def reopen(session: SessionId, actor: PersonId, limits: Limits) -> Transaction[None]:
    """Let a closed session go on; nothing speaks to it until it is resumed."""
    actor = yield from actors.hold(actor)
    known = yield from first(Session, q.session(session=session))
    if known is None:
        raise Refused(Refusal.NOT_FOUND)
    parent, label = known.parent, known.label
    view = yield from _view([], [session, *([parent] if parent else [])], actor, limits)
    found = view.sessions[session]
    if found.owner != actor:
        raise Refused(Refusal.NOT_FOUND)
    if parent and found.depth and found.closed:
        if view.sessions[parent].children >= limits.children:
            raise Refused(Refusal.TOO_MANY_CHILDREN)
        if label and label in view.sessions[parent].labels:
            raise Refused(Refusal.LABEL_TAKEN)
    yield q.reopen_session(session=session)


def fold(folds: Mapping[str, Sequence[tuple[Lane, Lane]]], by: PersonId, at: Moment) -> Transaction[None]:
    """Each first lane of a pair turned out to be the second, by the move that the pair stands under.

    What was last used stays, the other's binding ends as merged.
    """
    every = sorted({lane for pairs in folds.values() for pair in pairs for lane in pair}, key=lambda lane: lane.key)
    for lane in every:
        yield q.lock_lane(lane=lane.key)
    bound: set[SessionId] = set()
    for lane in every:
        bound.update(use.session for use in (yield from each(LastUse, q.last_use(lane=lane.key))))
    for session in sorted(bound):
        yield q.lock_session(session=session)
    # Asked again under the locks: somebody may have spoken meanwhile.
    used: dict[Lane, tuple[SessionId, Moment]] = {}
    for lane in every:
        for use in (yield from each(LastUse, q.last_use(lane=lane.key))):
            used[lane] = use.session, max(use.since, use.spoke or use.since)
    for id, gone, kept in ((id, *pair) for id, pairs in folds.items() for pair in pairs):
        if gone not in used:
            continue
        session, last = used[gone]
        yield from bind(gone, None, Why.MERGED, by, id, at)
        there, there_last = used.get(kept, (None, last))
        if there is None or there_last < last:
            yield from bind(kept, session, Why.MERGED, by, id, at)
            used[kept] = session, last
        elif there != session:
            # It stays among what the lane has spoken to, so that it can be resumed there.
            yield q.add_past_binding(lane=kept.key, session=session, why=Why.MERGED, by=by, move=id, at=at)


def bind(
    lane: Lane, session: SessionId | None, why: Why, by: PersonId, move: str, at: Moment
) -> Transaction[SessionId | None]:
    """Let a lane speak to a session, or to nobody; returns what it spoke to before.

    The clocks of two machines may differ: what comes later in a lane never begins before what came earlier has ended.
    """
    ended = yield from first(Ended, q.end_binding(lane=lane.key, why=why, move=move, at=at))
    if session is not None:
        since = max(at, ended.until) if ended else at
        yield q.add_binding(lane=lane.key, session=session, why=why, by=by, move=move, at=since)
        yield q.read_by(lane=lane.key, session=session)
        yield q.sweep_soon(session=session, at=at)
        if lane.address.thread:
            yield Wake(Topic.NAMED, session)
    if not ended:
        return None
    yield q.read_by(lane=lane.key, session=ended.session)
    yield q.sweep_soon(session=ended.session, at=at)
    return ended.session


def _in_lanes_of_now(move: Move) -> Transaction[Move]:
    go_on: dict[Lane, Lane] = {}
    for lane in lanes_of(move):
        go_on[lane] = yield from lanes.now(lane)
    return in_lanes(move, go_on)


def _at(move: Move) -> Tip | None:
    """The entry that a move brings to its lane, if it isn't the end of a session."""
    return move.at if isinstance(move, Fork) else None


def _view(
    touched: Sequence[Lane],
    sessions: Iterable[SessionId],
    actor: PersonId,
    limits: Limits,
    within: str = "",
    at: Tip | None = None,
) -> Transaction[View]:
    """Lock the lanes, what they speak to and the sessions named, and tell how they stand."""
    for lane in sorted(touched, key=lambda lane: lane.key):
        if not (yield from lanes.hold(lane)):
            raise Invalid(
                "lane", f"{lane.key!r} has never been seen", "Open it first with `store.lane(place, person)`."
            )
    bound: dict[Lane, Bound] = {}
    for lane in touched:
        bound[lane] = yield from one(Bound, q.bound(lane=lane.key))
    named = frozenset(sessions)
    wanted = named | {here.session for here in bound.values() if here.session is not None}
    found: dict[SessionId, SessionView] = {}
    for id in sorted(wanted):
        if view := (yield from _session_view(id, limits, within)):
            found[id] = view
    # A handoff names no session: it brings what one lane speaks to to the other.
    about = [found[id] for id in sorted(named or (wanted if len(bound) > 1 else ())) if id in found]
    seen: dict[Lane, LaneView] = {}
    for lane, here in bound.items():
        audience = Place(lane.address, here.kind).audience
        known, read = set[SessionId](), set[SessionId]()
        for session in about:
            if (yield q.been_here(lane=lane.key, session=session.id)):
                known.add(session.id)
            # Its owner is asked nothing in a private lane, whatever was read there.
            own = audience is Audience.ONE and session.owner == actor
            if not own and (yield from _read_whole(lane, session.id, at)):
                read.add(session.id)
        live = yield from one(int, q.begun_here(lane=lane.key, most=limits.live_per_lane))
        seen[lane] = LaneView(here.session, audience, live, frozenset(known), frozenset(read))
    return View(actor, seen, found, limits)


def _read_whole(lane: Lane, session: SessionId, at: Tip | None) -> Transaction[bool]:
    """Whether all that a move brings to a lane was read there."""
    left = yield from (readings.since(lane.address, at) if at else readings.unread(lane.address, session))
    return left == readings.NOTHING


def _session_view(session: SessionId, limits: Limits, within: str) -> Transaction[SessionView | None]:
    locked = yield from first(Locked, q.lock_session(session=session))
    if locked is None:
        return None
    handoff = yield from first(str, q.handoff_running(session=session))
    # A handoff keeps everybody else from moving its session, and what waits there waits for it.
    own = bool(within) and handoff == within
    children = yield from each(Session, q.children(session=session, most=limits.children))
    return SessionView(
        locked.id,
        locked.owner,
        locked.tip,
        closed=locked.closed,
        busy=locked.busy and not own,
        moving=handoff is not None and not own,
        depth=locked.depth,
        children=len(children),
        labels=frozenset(child.label for child in children if child.label),
    )


def _apply(
    kind: str,
    changes: Sequence[Change],
    view: View,
    id: str,
    at: Moment,
    session: SessionId | None = None,
    here: Lane | None = None,
) -> Transaction[Moving]:
    actor = view.actor
    made: list[Made] = []
    for change in changes:
        if isinstance(change, Begin):
            yield from begin(change, at)
            session = change.session
    target = session or next((c.session for c in changes if isinstance(c, Bind)), None)
    here = here or next((c.lane for c in changes if not isinstance(c, Begin)), None)
    lane = here.key if here else None
    yield q.add_move(move=id, kind=kind, lane=lane, session=target, by=actor, at=at)
    for change in changes:
        match change:
            case Begin():
                pass
            case Bind():
                before = yield from bind(change.lane, change.session, change.why, actor, id, at)
                made.append(Made(change.lane, before, change.session))
            case Unbind():
                before = yield from bind(change.lane, None, change.why, actor, id, at)
                made.append(Made(change.lane, before, None))
            case _:
                assert_never(change)
    return Moving(id, tuple(made), target)


def begin(begin: Begin, at: Moment) -> Transaction[None]:
    """A new session comes to be."""
    yield q.add_session(
        session=begin.session,
        owner=begin.owner,
        origin=begin.origin.key if begin.origin else None,
        parent=begin.parent,
        depth=begin.depth,
        label=begin.label,
        ending=begin.ending,
        tip_session=begin.tip.session if begin.tip else None,
        tip=begin.tip.n if begin.tip else None,
        at=at,
    )
    yield Wake(Topic.BEGUN, begin.owner, Hearers.HERE)
    if begin.title:
        yield from titles.take(begin.session, begin.owner, new_title(begin.title), at)
