"""Bindings, tips and lanes as facts: what stands, since when and why."""

from segue.core.lanes import Kind, Lane
from segue.core.moves import Why
from segue.core.transcripts import Tip, TipMove
from segue.core.values import Moment, PersonId, SessionId, Value


class Binding(Value, frozen=True):
    """A fact: this lane speaks to that session, since when, until when, why, by whom."""

    lane: Lane
    session: SessionId
    since: Moment
    until: Moment | None
    why: Why
    ended_why: Why | None
    by: PersonId


class LaneStanding(Value, frozen=True):
    """The standing of a lane: the session that it speaks to, if any, since when and why."""

    lane: Lane
    kind: Kind
    name: str
    session: SessionId | None
    since: Moment | None
    why: Why | None


class TipChange(Value, frozen=True):
    """A fact: a session's tip went from here to there, why, by whom, when."""

    before: Tip | None
    after: Tip | None
    why: TipMove
    by: PersonId
    at: Moment
