"""Resets: which sessions are over, and the last turn of each, asked once.

Law: the sweep ends no binding; the next message does that, with the reason. What the sweep does is to ask the ending
session's last turn, while no turn, child or background work of it runs. That turn makes the session no younger, so the
next message finds it over all the same and needn't wait for it. Its key is the session and the last turn before it: as
long as nobody asks the session anything more it is the same turn, whoever sweeps, however often, by whatever clock.

A session is looked at when it may be over at the soonest, then when it may be by all that was said meanwhile. So the
sweep costs the same however many sessions there are, and a message costs no more for it.
"""

from collections.abc import Callable, Sequence

from segue.changes.exchange import turns
from segue.changes.rows import each, first
from segue.changes.sessions import moves, readings, titles
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Kind, Lane, Place, also_read_in
from segue.core.messages import Part, Parts, Undo
from segue.core.moves import Why
from segue.core.resets import Policies, due, ends
from segue.core.text import notices
from segue.core.transcripts import Entry, TipMove, before_answer, exchanges
from segue.core.turns import Ask, Finish, Onto, Reply, Run, TakeBack, TurnKind, order_of
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q

_SETTING = "resets"
_AGAIN = 60.0
"""Seconds after which a session that is over but at work is looked at again, unless it may be over sooner."""
_NEVER = 1e18
Wanted = Callable[[SessionId, PersonId], Transaction[bool]]
"""Whether a session that ends has anything to do in its last turn, by its owner."""


class Swept(Value, frozen=True):
    """A session that is looked at, held."""

    owner: PersonId
    used: Moment
    busy: bool
    anything: bool
    """Something was said in it."""
    closed: bool


class LastAsked(Value, frozen=True):
    """The last turn that was asked of a session, and when."""

    seq: int
    accepted: Moment


class BoundPlace(Value, frozen=True):
    """A lane that speaks to a session, since when, and the kind of its place."""

    lane: Lane
    since: Moment
    kind: Kind


class Left(Value, frozen=True):
    """When and why the last of its lanes left a session."""

    until: Moment
    why: Why


def adopt(policies: str) -> Transaction[None]:
    """Look at every session again if the policies aren't those that held before."""
    if (yield from first(str, q.setting(name=_SETTING))) != policies:
        yield q.set_setting(name=_SETTING, value=policies)
        yield q.sweep_all()


def to_look_at(at: Moment, count: int) -> Transaction[list[SessionId]]:
    """Sessions that may be over by now."""
    return (yield from each(SessionId, q.to_sweep(at=at, count=count)))


def look(
    session: SessionId, policies: Policies, words: Parts, at: Moment, wanted: Wanted | None = None
) -> Transaction[bool]:
    """Ask the last turn of a session if it is over and that is wanted there; returns whether that is new."""
    found = yield from first(Swept, q.hold_to_sweep(session=session, at=at))
    if found is None:
        return False
    if not found.closed and (found.busy or (yield from at_work(session, at))):
        # What it does makes it younger: as if it were used now, it isn't over before that.
        soonest = yield from _again(session, policies, at, at)
        yield q.sweep_at(session=session, sweep=at + min(_AGAIN, max(1.0, (soonest or _NEVER) - at)))
        return False
    last = (yield from first(LastAsked, q.last_asked(session=session))) or LastAsked(0, found.used)
    again = yield from _again(session, policies, found.used, at)
    if again is not None:
        yield q.sweep_at(session=session, sweep=max(again, at + 1))
        return False
    call = f"ending/{session}/{last.seq}"
    left = yield from _left(session, last.accepted)
    if found.closed or not found.anything or not left or (yield q.turn_of_call(call=call)):
        yield q.sweep_at(session=session, sweep=None)
        return False
    if wanted is not None and not (yield from wanted(session, found.owner)):
        yield q.sweep_at(session=session, sweep=None)
        return False
    yield from turns.ask(Ask(session, TurnKind.ENDING, call, words, found.owner), at)
    return True


def at_work(session: SessionId, at: Moment) -> Transaction[bool]:
    """Whether a child, a handoff or background work keeps a session from being reset."""
    return bool(
        (yield q.children_at_work(session=session))
        or (yield q.handoff_running(session=session))
        or (yield q.kept(session=session, at=at))
    )


def keep(session: SessionId, why: str, until: Moment, at: Moment) -> Transaction[None]:
    """Something goes on behind a session's turns: it isn't reset until then."""
    yield q.keep(session=session, why=why, until=until, at=at)


def let_go(session: SessionId, why: str, at: Moment) -> Transaction[None]:
    """It is done."""
    yield q.unkeep(session=session, why=why, at=at)


def _again(session: SessionId, policies: Policies, used: Moment, at: Moment) -> Transaction[Moment | None]:
    """When a session that isn't over in all its lanes is to be looked at again; None if it is over in each."""
    moments = []
    for bound in (yield from each(BoundPlace, q.bound_places(session=session))):
        policy = policies.of(bound.lane, bound.kind)
        last = max(used, bound.since)
        if due(policy, last, at) is None:
            end = ends(policy, last)
            moments.append(_NEVER if end is None else end)
    return max(moments, default=None)


def _left(session: SessionId, accepted: Moment) -> Transaction[bool]:
    """Whether a session is spoken to, or was left because it was over and nothing was asked of it since."""
    if (yield q.bound_places(session=session)):
        return True
    left = yield from first(Left, q.last_left(session=session))
    return left is not None and left.why in (Why.IDLE, Why.DAILY) and accepted <= left.until


def _others(session: SessionId, person: PersonId, here: Address) -> Transaction[list[Place]]:
    """The places with others than a person that read a session and not what is said here."""
    found: list[Place] = []
    for address in (yield from readings.others(session, person)):
        found += (yield from each(Place, q.address(address=address.key))) if address != here else []
    return found


_RESETS = frozenset({Why.IDLE, Why.DAILY})


def reset_taken_back(run: Run, path: Sequence[Entry]) -> Transaction[Finish | None]:
    """The session that an undo leaves, if the exchange that it takes back is the one that a reset came with."""
    turn = run.turns[0]
    if turn.kind is not TurnKind.UNDO or order_of(turn) != Undo() or turn.lane is None:
        return None
    if len(exchanges(path)) != 1:
        return None
    lane = Lane.parse(turn.lane)
    move = yield from moves.last_move(lane)
    if move is None or move.why not in _RESETS or move.session != run.held.session:
        return None
    [step] = yield from moves.made_by(move.id)
    if step.before is None:
        return None
    to, asked = before_answer(path)
    parts: tuple[Part, ...] = tuple(part for entry in asked for part in entry.parts)
    again = Ask(
        step.before,
        TurnKind.ARRIVAL,
        f"undo/{run.held.session}/{run.name}",
        parts,
        asked[0].author.person,
        asked[0].author.name,
        lane.key,
        turn.route,
        turn.trace,
        turn.message,
        asked[0].source.identity,
    )
    wider = yield from _others(step.before, PersonId(turn.person), lane.address)
    said = notices.reset_taken_back((yield from titles.of(step.before)), also_read_in(wider) if wider else "")
    return Finish(
        (turn.seq,),
        (),
        (Reply(Address.parse(turn.route), said, 0, (turn.message,)),),
        onto=Onto(to, TipMove.UNDO, turn.person),
        onward=() if wider else (again,),
        back=TakeBack(move.id, PersonId(turn.person), f"{move.id}/undo"),
    )
