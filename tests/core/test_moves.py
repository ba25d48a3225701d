"""Moves: what each one changes, what refuses it, and what holds whatever the facts are."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from segue.core import moves
from segue.core.lanes import Address, Audience, Lane
from segue.core.moves import (
    Begin,
    Bind,
    Change,
    Consent,
    Fork,
    Handoff,
    LaneView,
    Limits,
    Made,
    Move,
    Release,
    Renew,
    Resume,
    SessionView,
    Spawn,
    Start,
    Unbind,
    View,
    Why,
    in_lanes,
    lanes_of,
    plan,
    sessions_of,
    take_back,
)
from segue.core.transcripts import Ending, Tip
from segue.core.values import PersonId, SessionId
from segue.errors import Refusal, Refused

ANN, BOB, HOST = PersonId("ann"), PersonId("bob"), PersonId("host")
HERE, THERE = Lane(Address("telegram", "bot", chat="1")), Lane(Address("slack", "app", "T", "D1"))
GROUP = Lane(Address("discord", "bot", "G", "general", "thread"))
TAX, TRIP, NEW = SessionId("tax"), SessionId("trip"), SessionId("new")
END = Tip(TAX, 7)


def session(id: SessionId = TAX, *, owner: PersonId = ANN, **facts: object) -> SessionView:
    return SessionView(id, owner, **facts)  # type: ignore[arg-type]


def view(
    *sessions: SessionView,
    by: PersonId = ANN,
    here: LaneView = LaneView(),  # noqa: B008
    there: LaneView = LaneView(),  # noqa: B008
    group: LaneView = LaneView(audience=Audience.MANY),  # noqa: B008
    limits: Limits = Limits(),  # noqa: B008
) -> View:
    return View(by, {HERE: here, THERE: there, GROUP: group}, {s.id: s for s in sessions}, limits)


def crowd(bound: SessionId | None = None, *read: SessionId) -> LaneView:
    """A lane that many people read, and the sessions that were there and that they have read whole."""
    return LaneView(bound, Audience.MANY, known=frozenset(read), read=frozenset(read))


def refusal(move: Move, view: View) -> Refusal:
    with pytest.raises(Refused) as refused:
        plan(move, view)
    return refused.value.why


# What each move changes


RENEW = Renew(HERE, NEW)
RESUME = Resume(HERE, TAX)
FORK = Fork(HERE, TAX, NEW)
HANDOFF = Handoff(HERE, THERE)
SPAWN = Spawn(TAX, NEW)
RELEASE = Release(HERE)
SPEAKS = LaneView(TAX)


@pytest.mark.parametrize(
    ("move", "view", "changes"),
    [
        pytest.param(
            RENEW,
            view(),
            (Begin(NEW, ANN, HERE), Bind(HERE, NEW, Why.NEW)),
            id="renew: the first session of a lane",
        ),
        pytest.param(
            Renew(HERE, NEW, Why.DAILY),
            view(session(), here=SPEAKS),
            (Begin(NEW, ANN, HERE), Bind(HERE, NEW, Why.DAILY)),
            id="renew: in place of another, and why",
        ),
        pytest.param(
            Renew(GROUP, NEW),
            view(session(), by=BOB, group=crowd(TAX, TAX)),
            (Begin(NEW, BOB, GROUP), Bind(GROUP, NEW, Why.NEW)),
            id="renew: whoever starts it owns it",
        ),
        pytest.param(
            RENEW,
            view(session(busy=True, closed=True), here=SPEAKS),
            (Begin(NEW, ANN, HERE), Bind(HERE, NEW, Why.NEW)),
            id="renew: a broken session can be left",
        ),
        pytest.param(RESUME, view(session()), (Bind(HERE, TAX, Why.RESUME),), id="resume: one's own"),
        pytest.param(
            Resume(HERE, TAX, Why.QUOTE),
            view(session(), session(TRIP), here=LaneView(TRIP)),
            (Bind(HERE, TAX, Why.QUOTE),),
            id="resume: in place of another, and why",
        ),
        pytest.param(
            RESUME,
            view(session(busy=True), there=SPEAKS),
            (Bind(HERE, TAX, Why.RESUME),),
            id="resume: a running turn isn't disturbed, another lane keeps it",
        ),
        pytest.param(
            Resume(GROUP, TAX),
            view(session(), by=BOB, group=crowd(None, TAX)),
            (Bind(GROUP, TAX, Why.RESUME),),
            id="resume: anyone there may switch among sessions begun there",
        ),
        pytest.param(
            Resume(GROUP, TAX, consent=Consent.GIVEN),
            view(session()),
            (Bind(GROUP, TAX, Why.RESUME),),
            id="resume: among more readers, with a yes",
        ),
        pytest.param(
            Resume(GROUP, TAX),
            view(session(), group=crowd(None, TAX)),
            (Bind(GROUP, TAX, Why.RESUME),),
            id="resume: among readers who know it",
        ),
        pytest.param(
            FORK,
            view(session(tip=END), here=SPEAKS),
            (Begin(NEW, ANN, HERE, tip=END, parent=TAX), Bind(HERE, NEW, Why.FORK)),
            id="fork: where the source stands",
        ),
        pytest.param(
            Fork(HERE, TAX, NEW, at=Tip(TAX, 3), title="Plan B"),
            view(session(tip=END)),
            (Begin(NEW, ANN, HERE, tip=Tip(TAX, 3), parent=TAX, title="Plan B"), Bind(HERE, NEW, Why.FORK)),
            id="fork: at an entry, with a title",
        ),
        pytest.param(
            FORK,
            view(session()),
            (Begin(NEW, ANN, HERE, parent=TAX), Bind(HERE, NEW, Why.FORK)),
            id="fork: of a session in which nothing was said",
        ),
        pytest.param(
            FORK,
            view(session(tip=END, closed=True, busy=True, moving=True, depth=3)),
            (Begin(NEW, ANN, HERE, tip=END, parent=TAX), Bind(HERE, NEW, Why.FORK)),
            id="fork: of a closed, busy or moving one: it leaves the source as it is",
        ),
        pytest.param(
            Fork(GROUP, TAX, NEW),
            view(session(tip=END), by=BOB, group=crowd(TAX, TAX)),
            (Begin(NEW, BOB, GROUP, tip=END, parent=TAX), Bind(GROUP, NEW, Why.FORK)),
            id="fork: by anyone where it was begun, who then owns the fork",
        ),
        pytest.param(
            HANDOFF,
            view(session(), session(TRIP), here=SPEAKS, there=LaneView(TRIP)),
            (Bind(THERE, TAX, Why.HANDOFF),),
            id="handoff: the destination changes, the origin stays until it is done",
        ),
        pytest.param(
            Handoff(HERE, GROUP, Consent.GIVEN),
            view(session(), here=SPEAKS),
            (Bind(GROUP, TAX, Why.HANDOFF),),
            id="handoff: among more readers, with a yes",
        ),
        pytest.param(
            SPAWN,
            view(session(tip=END)),
            (Begin(NEW, ANN, None, parent=TAX, depth=1),),
            id="spawn: a child needs no lane",
        ),
        pytest.param(
            Spawn(TAX, NEW, "maps", THERE, Start.FORK, Ending.ONE_SHOT),
            view(session(tip=END, depth=2, children=15, labels=frozenset({"food"}))),
            (
                Begin(NEW, ANN, THERE, tip=END, parent=TAX, depth=3, label="maps", ending=Ending.ONE_SHOT),
                Bind(THERE, NEW, Why.SPAWN),
            ),
            id="spawn: with everything",
        ),
        pytest.param(
            SPAWN,
            view(session(busy=True, moving=True, labels=frozenset({"maps", ""}))),
            (Begin(NEW, ANN, None, parent=TAX, depth=1),),
            id="spawn: from a running turn, without a label",
        ),
        pytest.param(RELEASE, view(session(), here=SPEAKS), (Unbind(HERE, Why.RELEASE),), id="release"),
        pytest.param(
            Release(HERE, Why.CLOSE),
            view(session(owner=BOB, busy=True), here=SPEAKS),
            (Unbind(HERE, Why.CLOSE),),
            id="release: and why",
        ),
    ],
)
def test_what_a_move_changes(move: Move, view: View, changes: tuple[Change, ...]) -> None:
    assert plan(move, view) == changes


# What refuses a move


FEW = Limits(live_per_lane=2, depth=2, children=2)
MOVING = session(moving=True)


@pytest.mark.parametrize(
    ("move", "view", "why"),
    [
        pytest.param(RENEW, view(MOVING, here=SPEAKS), Refusal.HANDOFF_RUNNING, id="renew: handed off right now"),
        pytest.param(
            RENEW, view(here=LaneView(live=2), limits=FEW), Refusal.TOO_MANY_LIVE, id="renew: too many sessions here"
        ),
        pytest.param(RESUME, view(), Refusal.NOT_FOUND, id="resume: doesn't exist"),
        pytest.param(RESUME, view(session(owner=BOB)), Refusal.NOT_FOUND, id="resume: not yours"),
        pytest.param(
            RESUME, view(session(owner=BOB), by=HOST), Refusal.NOT_FOUND, id="resume: not yours, host though you are"
        ),
        pytest.param(RESUME, view(session(owner=BOB)), Refusal.NOT_FOUND, id="resume: not yours, and never here"),
        pytest.param(
            RESUME, view(session(owner=BOB), here=SPEAKS), Refusal.NOT_FOUND, id="resume: not yours, though it is here"
        ),
        pytest.param(
            Resume(HERE, TAX, consent=Consent.GIVEN),
            view(session(owner=BOB)),
            Refusal.NOT_FOUND,
            id="resume: not yours, whatever was said",
        ),
        pytest.param(RESUME, view(session(), here=SPEAKS), Refusal.ALREADY_THERE, id="resume: already there"),
        pytest.param(RESUME, view(session(closed=True)), Refusal.CLOSED, id="resume: closed"),
        pytest.param(RESUME, view(MOVING), Refusal.HANDOFF_RUNNING, id="resume: it is being handed off"),
        pytest.param(
            RESUME,
            view(session(), session(TRIP, moving=True), here=LaneView(TRIP)),
            Refusal.HANDOFF_RUNNING,
            id="resume: what is here is being handed off",
        ),
        pytest.param(Resume(GROUP, TAX), view(session()), Refusal.NEEDS_YES, id="resume: more people could read it"),
        pytest.param(
            Resume(GROUP, TAX),
            view(session(), session(TRIP), group=crowd(TRIP, TRIP)),
            Refusal.NEEDS_YES,
            id="resume: they know another session, not this one",
        ),
        pytest.param(FORK, view(), Refusal.NOT_FOUND, id="fork: doesn't exist"),
        pytest.param(FORK, view(session(owner=BOB)), Refusal.NOT_FOUND, id="fork: not yours"),
        pytest.param(Fork(GROUP, TAX, NEW), view(session()), Refusal.NEEDS_YES, id="fork: more people could read it"),
        pytest.param(FORK, view(MOVING, here=SPEAKS), Refusal.HANDOFF_RUNNING, id="fork: handed off right now"),
        pytest.param(
            FORK,
            view(session(), here=LaneView(live=2), limits=FEW),
            Refusal.TOO_MANY_LIVE,
            id="fork: too many sessions here",
        ),
        pytest.param(HANDOFF, view(), Refusal.NOTHING_BOUND, id="handoff: nothing here"),
        pytest.param(
            HANDOFF, view(session(owner=BOB), here=SPEAKS), Refusal.NOT_ALLOWED, id="handoff: only the owner may"
        ),
        pytest.param(
            HANDOFF, view(session(), by=HOST, here=SPEAKS), Refusal.NOT_ALLOWED, id="handoff: the host is no owner"
        ),
        pytest.param(
            Handoff(HERE, HERE), view(session(), here=SPEAKS), Refusal.SAME_LANE, id="handoff: to where it is"
        ),
        pytest.param(
            HANDOFF, view(session(), here=SPEAKS, there=SPEAKS), Refusal.SAME_LANE, id="handoff: it is there too"
        ),
        pytest.param(
            HANDOFF,
            view(session(owner=BOB), here=SPEAKS, there=SPEAKS),
            Refusal.NOT_ALLOWED,
            id="handoff: others don't learn where else it is",
        ),
        pytest.param(HANDOFF, view(MOVING, here=SPEAKS), Refusal.HANDOFF_RUNNING, id="handoff: one at a time"),
        pytest.param(
            HANDOFF,
            view(session(), session(TRIP, moving=True), here=SPEAKS, there=LaneView(TRIP)),
            Refusal.HANDOFF_RUNNING,
            id="handoff: the destination is part of another one",
        ),
        pytest.param(HANDOFF, view(session(busy=True), here=SPEAKS), Refusal.BUSY, id="handoff: a turn runs or waits"),
        pytest.param(
            Handoff(HERE, GROUP),
            view(session(), here=SPEAKS),
            Refusal.NEEDS_YES,
            id="handoff: more people could read it",
        ),
        pytest.param(SPAWN, view(), Refusal.NOT_FOUND, id="spawn: the parent doesn't exist"),
        pytest.param(SPAWN, view(session(owner=BOB)), Refusal.NOT_FOUND, id="spawn: the parent isn't yours"),
        pytest.param(SPAWN, view(session(closed=True)), Refusal.CLOSED, id="spawn: the parent is closed"),
        pytest.param(SPAWN, view(session(depth=2), limits=FEW), Refusal.TOO_DEEP, id="spawn: too deep"),
        pytest.param(SPAWN, view(session(depth=3)), Refusal.TOO_DEEP, id="spawn: too deep by default"),
        pytest.param(SPAWN, view(session(children=2), limits=FEW), Refusal.TOO_MANY_CHILDREN, id="spawn: too many"),
        pytest.param(SPAWN, view(session(children=16)), Refusal.TOO_MANY_CHILDREN, id="spawn: too many by default"),
        pytest.param(
            Spawn(TAX, NEW, "maps"),
            view(session(labels=frozenset({"maps"}))),
            Refusal.LABEL_TAKEN,
            id="spawn: a label is one live child's",
        ),
        pytest.param(
            Spawn(TAX, NEW, lane=THERE),
            view(session(), session(TRIP, moving=True), there=LaneView(TRIP)),
            Refusal.HANDOFF_RUNNING,
            id="spawn: its lane is part of a handoff",
        ),
        pytest.param(RELEASE, view(), Refusal.NOTHING_BOUND, id="release: nothing here"),
        pytest.param(
            RELEASE, view(MOVING, here=SPEAKS), Refusal.HANDOFF_RUNNING, id="release: only once a handoff has settled"
        ),
    ],
)
def test_what_refuses_a_move(move: Move, view: View, why: Refusal) -> None:
    assert refusal(move, view) is why


@pytest.mark.parametrize("why", [Why.FIRST, Why.IDLE, Why.DAILY])
def test_who_only_speaks_is_never_turned_away_by_a_limit(why: Why) -> None:
    full = view(here=LaneView(live=2), limits=FEW)
    assert plan(Renew(HERE, NEW, why), full) == (Begin(NEW, ANN, HERE), Bind(HERE, NEW, why))


@pytest.mark.parametrize("why", Refusal)
def test_a_refusal_says_what_happened_in_whole_sentences(why: Refusal) -> None:
    assert str(Refused(why)) == why.value
    assert re.fullmatch(r"[A-Z].*\.", why.value)


# What is asked of the store


@pytest.mark.parametrize(
    ("move", "lanes", "sessions"),
    [
        (RENEW, (HERE,), ()),
        (RESUME, (HERE,), (TAX,)),
        (FORK, (HERE,), (TAX,)),
        (HANDOFF, (HERE, THERE), ()),
        (SPAWN, (), (TAX,)),
        (Spawn(TAX, NEW, lane=THERE), (THERE,), (TAX,)),
        (RELEASE, (HERE,), ()),
    ],
)
def test_what_a_move_touches(move: Move, lanes: tuple[Lane, ...], sessions: tuple[SessionId, ...]) -> None:
    assert lanes_of(move) == lanes
    assert sessions_of(move) == sessions


@pytest.mark.parametrize("move", [RENEW, RESUME, FORK, HANDOFF, SPAWN, Spawn(TAX, NEW, lane=THERE), RELEASE])
def test_a_move_goes_on_in_the_lanes_that_its_lanes_go_on_as(move: Move) -> None:
    now = {HERE: THERE, THERE: GROUP}
    moved = in_lanes(move, now)
    assert lanes_of(moved) == tuple(now[lane] for lane in lanes_of(move))
    assert sessions_of(moved) == sessions_of(move)
    assert in_lanes(moved, {THERE: HERE, GROUP: THERE}) == move


# Taking it back


@pytest.mark.parametrize(
    ("made", "view", "changes"),
    [
        pytest.param(
            (Made(HERE, TAX, NEW),),
            view(session(), session(NEW), here=LaneView(NEW)),
            (Bind(HERE, TAX, Why.UNDO),),
            id="back to what was there",
        ),
        pytest.param(
            (Made(HERE, None, NEW),), view(session(NEW), here=LaneView(NEW)), (Unbind(HERE, Why.UNDO),), id="to nothing"
        ),
        pytest.param((Made(HERE, TAX, None),), view(session()), (Bind(HERE, TAX, Why.UNDO),), id="a release"),
        pytest.param(
            (Made(HERE, TAX, None), Made(THERE, TRIP, TAX)),
            view(session(), session(TRIP), there=SPEAKS),
            (Bind(HERE, TAX, Why.UNDO), Bind(THERE, TRIP, Why.UNDO)),
            id="every lane that it touched",
        ),
        pytest.param(
            (Made(GROUP, TAX, NEW),),
            view(session(), session(NEW), by=BOB, group=crowd(NEW, TAX, NEW)),
            (Bind(GROUP, TAX, Why.UNDO),),
            id="by anybody, to what was begun there",
        ),
    ],
)
def test_what_taking_a_move_back_changes(made: tuple[Made, ...], view: View, changes: tuple[Change, ...]) -> None:
    assert take_back(made, view) == changes


@pytest.mark.parametrize(
    ("made", "view", "why"),
    [
        pytest.param((), view(), Refusal.NOTHING_TO_UNDO, id="it touched no lane"),
        pytest.param(
            (Made(HERE, TAX, NEW),),
            view(session(), session(TRIP), here=LaneView(TRIP)),
            Refusal.MOVED_SINCE,
            id="another session since",
        ),
        pytest.param((Made(HERE, TAX, NEW),), view(session()), Refusal.MOVED_SINCE, id="released since"),
        pytest.param(
            (Made(HERE, TAX, None), Made(THERE, TRIP, TAX)),
            view(session(), session(TRIP), there=LaneView(TRIP)),
            Refusal.MOVED_SINCE,
            id="one of its lanes went on",
        ),
        pytest.param(
            (Made(HERE, TAX, NEW),),
            view(session(closed=True), session(NEW), here=LaneView(NEW)),
            Refusal.CLOSED,
            id="what was there is closed",
        ),
        pytest.param(
            (Made(HERE, TAX, NEW),),
            view(session(), session(NEW, moving=True), here=LaneView(NEW)),
            Refusal.HANDOFF_RUNNING,
            id="what is there is being handed off",
        ),
        pytest.param(
            (Made(HERE, TAX, NEW),),
            view(MOVING, session(NEW), here=LaneView(NEW)),
            Refusal.HANDOFF_RUNNING,
            id="what was there is being handed off",
        ),
        pytest.param(
            (Made(GROUP, TAX, NEW),),
            view(session(), session(NEW), by=BOB, group=crowd(NEW, NEW)),
            Refusal.NOT_FOUND,
            id="what was there is another's and has gone on elsewhere",
        ),
        pytest.param(
            (Made(GROUP, TAX, NEW),),
            view(session(), session(NEW), group=crowd(NEW, NEW)),
            Refusal.NEEDS_YES,
            id="what was there has gone on elsewhere",
        ),
    ],
)
def test_what_refuses_to_be_taken_back(made: tuple[Made, ...], view: View, why: Refusal) -> None:
    with pytest.raises(Refused) as refused:
        take_back(made, view)
    assert refused.value.why is why


# Whatever the facts are


LANES, SESSIONS = (HERE, THERE), (TAX, TRIP)
# Weighted so that about half of the moves go through: a plan that is always refused proves little.
lanes, ids = st.sampled_from(LANES), st.sampled_from((*SESSIONS, *SESSIONS, SessionId("unknown")))
people = st.sampled_from((ANN, ANN, ANN, BOB, HOST))
consents, rarely = st.sampled_from(Consent), st.sampled_from((False, False, False, False, True))
session_views = st.tuples(
    *(
        st.builds(
            SessionView,
            st.just(id),
            people.map(lambda actor: actor),
            st.just(Tip(id, 5)),
            closed=rarely,
            busy=rarely,
            moving=rarely,
            depth=st.integers(0, 1),
            children=st.integers(0, 1),
            labels=st.sampled_from((frozenset(), frozenset({"a"}))),
        )
        for id in SESSIONS
    )
)
lane_views = st.builds(
    LaneView,
    st.sampled_from((*SESSIONS, None)),
    st.sampled_from(Audience),
    st.integers(0, 1),
    st.sampled_from((frozenset(), frozenset(SESSIONS))),
    st.sampled_from((frozenset(), frozenset(SESSIONS))),
)
views = st.builds(
    lambda by, lanes, sessions, limits: View(
        by, dict(zip(LANES, lanes, strict=True)), {s.id: s for s in sessions}, limits
    ),
    people,
    st.tuples(lane_views, lane_views),
    session_views,
    st.sampled_from((Limits(), Limits(), Limits(1, 1, 1))),
)
MOVES: dict[type[Move], st.SearchStrategy[Move]] = {
    Renew: st.builds(Renew, lanes, st.just(NEW), st.sampled_from((Why.FIRST, Why.NEW, Why.IDLE))),
    Resume: st.builds(Resume, lanes, ids, st.just(Why.RESUME), consents),
    # The entry that a fork goes on from lies on its source's path: whoever reads that path checks it, a plan can't.
    Fork: st.builds(Fork, lanes, ids, st.just(NEW), st.none(), st.just(""), consents),
    Handoff: st.builds(Handoff, lanes, lanes, consents),
    Spawn: st.builds(
        Spawn,
        ids,
        st.just(NEW),
        st.sampled_from(("", "a")),
        st.none() | lanes,
        st.sampled_from(Start),
        st.just(Ending.LASTING),
    ),
    Release: st.builds(Release, lanes),
}


def outcome(move: Move, view: View) -> tuple[Change, ...] | Refusal:
    try:
        return plan(move, view)
    except Refused as refused:
        return refused.why


@pytest.mark.parametrize("kind", MOVES)
@settings(max_examples=2 * settings().max_examples)
@given(st.data(), views)
def test_every_plan_keeps_its_promises(kind: type[Move], data: st.DataObject, view: View) -> None:
    move = data.draw(MOVES[kind])
    before = View(view.actor, dict(view.lanes), dict(view.sessions), view.limits)
    changes = outcome(move, view)
    assert view == before, "a plan changes nothing itself, refused or not"
    not_yours_and_does_not_exist_are_the_same(move, view)
    if not isinstance(changes, Refusal):
        only_sessions_that_are_there_are_bound_and_no_lane_twice(changes, move, view)
        a_lane_of_a_running_handoff_is_left_alone(changes, view)
        nobody_reads_what_is_neither_theirs_nor_read_where_they_stand(changes, view)
        more_people_read_a_session_only_with_a_yes(changes, move, view)
        what_is_taken_back_leaves_every_lane_where_it_was(changes, view)


def not_yours_and_does_not_exist_are_the_same(move: Move, view: View) -> None:
    for id in sessions_of(move):
        found = view.sessions.get(id)
        theirs = not isinstance(move, Spawn) and all(
            id in at.known & at.read for at in map(view.lanes.get, lanes_of(move)) if at
        )
        if found is None or (found.owner != view.actor and not theirs):
            gone = View(view.actor, view.lanes, {s: v for s, v in view.sessions.items() if s != id}, view.limits)
            assert outcome(move, view) is outcome(move, gone) is Refusal.NOT_FOUND


def only_sessions_that_are_there_are_bound_and_no_lane_twice(
    changes: tuple[Change, ...], move: Move, view: View
) -> None:
    there = set(view.sessions)
    touched: list[Lane] = []
    for change in changes:
        match change:
            case Begin():
                assert change.session not in there
                assert change.parent is None or change.parent in there
                there.add(change.session)
            case Bind():
                assert change.session in there
                touched.append(change.lane)
            case Unbind():
                assert view.lanes[change.lane].bound is not None
                touched.append(change.lane)
    assert changes
    assert len(touched) == len(set(touched))
    assert set(touched) <= set(lanes_of(move))


def a_lane_of_a_running_handoff_is_left_alone(changes: tuple[Change, ...], view: View) -> None:
    for change in changes:
        if not isinstance(change, Begin):
            bound = view.lanes[change.lane].bound
            assert bound is None or not view.sessions[bound].moving


def brought(changes: tuple[Change, ...], view: View) -> list[tuple[SessionView, Lane | None]]:
    """The sessions whose words a plan brings to a lane, or into a new session."""
    begun = {change.session: change for change in changes if isinstance(change, Begin)}
    bound = [change for change in changes if isinstance(change, Bind) and change.session not in begun]
    return [(view.sessions[change.session], change.lane) for change in bound] + [
        (view.sessions[begin.tip.session], begin.origin) for begin in begun.values() if begin.tip is not None
    ]


def nobody_reads_what_is_neither_theirs_nor_read_where_they_stand(changes: tuple[Change, ...], view: View) -> None:
    for read, lane in brought(changes, view):
        assert read.owner == view.actor or (lane is not None and read.id in view.lanes[lane].read)


def more_people_read_a_session_only_with_a_yes(changes: tuple[Change, ...], move: Move, view: View) -> None:
    if isinstance(move, Resume | Fork | Handoff) and move.consent is not Consent.GIVEN:
        for read, lane in brought(changes, view):
            assert lane is not None
            own = view.lanes[lane].audience is Audience.ONE and read.owner == view.actor
            assert own or read.id in view.lanes[lane].read


def what_is_taken_back_leaves_every_lane_where_it_was(changes: tuple[Change, ...], view: View) -> None:
    before = {lane: facts.bound for lane, facts in view.lanes.items()}
    made = tuple(
        Made(change.lane, before[change.lane], change.session if isinstance(change, Bind) else None)
        for change in changes
        if not isinstance(change, Begin)
    )
    after = carried_out(changes, view)

    def stays_away(step: Made) -> bool:
        """Whether what was there may not come back, or not by whoever takes the move back."""
        if step.before is None:
            return False
        found, there = after.sessions[step.before], after.lanes[step.lane]
        if found.owner == after.actor:
            return found.closed or (there.audience is Audience.MANY and found.id not in there.read)
        return found.closed or found.id not in there.known & there.read

    if not made or any(map(stays_away, made)):
        with pytest.raises(Refused):
            take_back(made, after)
    else:
        restored = carried_out(take_back(made, after), after)
        assert {lane: facts.bound for lane, facts in restored.lanes.items()} == before


def carried_out(changes: tuple[Change, ...], view: View) -> View:
    """The facts after a plan."""
    lanes, sessions = dict(view.lanes), dict(view.sessions)
    for change in changes:
        match change:
            case Begin():
                sessions[change.session] = SessionView(change.session, change.owner, change.tip)
            case Bind() | Unbind():
                was = lanes[change.lane]
                now = change.session if isinstance(change, Bind) else None
                lanes[change.lane] = LaneView(now, was.audience, was.live, was.known, was.read)
    return View(view.actor, lanes, sessions, view.limits)


@given(lanes, lanes, views, lane_views)
def test_who_may_not_hand_off_learns_nothing_about_the_destination(
    origin: Lane, destination: Lane, view: View, other: LaneView
) -> None:
    bound = view.lanes[origin].bound
    if origin == destination or bound is None or view.sessions[bound].owner == view.actor:
        return
    changed = View(view.actor, {**view.lanes, destination: other}, view.sessions, view.limits)
    move = Handoff(origin, destination)
    assert outcome(move, view) is outcome(move, changed) is Refusal.NOT_ALLOWED


# The set of moves is closed


def test_a_move_without_a_case_is_a_type_error(tmp_path: Path) -> None:
    source = Path(moves.__file__).read_text(encoding="utf-8")
    members = "Move = Renew | Resume | Fork | Handoff | Spawn | Release\n"
    assert members in source
    assert source.count("assert_never(move)") >= 3
    more = 'class Vanish(Value, frozen=True, tag="vanish"):\n    lane: Lane\n\n\n'
    changed = tmp_path / "more_moves.py"
    changed.write_text(source.replace(members, more + members.replace("\n", " | Vanish\n")), encoding="utf-8")
    checked = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--follow-imports=silent",
            "--cache-dir",
            str(tmp_path / "cache"),
            str(changed),
        ],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    errors = [line for line in checked.stdout.splitlines() if ": error: " in line]
    assert len(errors) == source.count("assert_never(move)"), checked.stdout + checked.stderr
    assert all('"assert_never" has incompatible type "Vanish"' in error for error in errors)
