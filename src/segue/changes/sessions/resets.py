"""Resets: which sessions are over, and the last turn of each, asked once.

Law: the sweep ends no binding; the next message does that, with the reason. What the sweep does is to ask the ending
session's last turn, while no turn, child or background work of it runs. That turn makes the session no younger, so the
next message finds it over all the same and needn't wait for it. Its key is the session and the last turn before it: as
long as nobody asks the session anything more it is the same turn, whoever sweeps, however often, by whatever clock.

A session is looked at when it may be over at the soonest, then when it may be by all that was said meanwhile. So the
sweep costs the same however many sessions there are, and a message costs no more for it.
"""

from __future__ import annotations

from segue.changes.exchange import turns
from segue.core.contracts.database import Transaction
from segue.core.lanes import Kind, Lane
from segue.core.messages import Parts
from segue.core.moves import Why
from segue.core.resets import Policies, due, ends
from segue.core.turns import Ask, TurnKind
from segue.core.values import Moment, SessionId
from segue.database.statements import q

_SETTING = "resets"
_AGAIN = 60.0
"""Seconds after which a session that is over but at work is looked at again."""
_NEVER = 1e18


def adopt(policies: str) -> Transaction[None]:
    """Look at every session again if the policies aren't those that held before."""
    rows = yield q.setting(name=_SETTING)
    if not rows or rows[0][0] != policies:
        yield q.set_setting(name=_SETTING, value=policies)
        yield q.sweep_all()


def to_look_at(at: Moment, count: int) -> Transaction[list[SessionId]]:
    """Sessions that may be over by now."""
    rows = yield q.to_sweep(at=at, count=count)
    return [SessionId(id) for (id,) in rows]


def look(session: SessionId, policies: Policies, words: Parts, at: Moment) -> Transaction[bool]:
    """Ask the last turn of a session if it is over; returns whether that is new."""
    rows = yield q.hold_to_sweep(session=session, at=at)
    if not rows:
        return False
    owner, used, busy, anything, closed = rows[0]
    if not closed and (busy or (yield from at_work(session, at))):
        yield q.sweep_at(session=session, sweep=at + _AGAIN)
        return False
    asked = yield q.last_asked(session=session)
    seq, accepted = asked[0] if asked else (0, used)
    again = yield from _again(session, policies, used, at)
    if again is not None:
        yield q.sweep_at(session=session, sweep=max(again, at + 1))
        return False
    call = f"ending/{session}/{seq}"
    left = yield from _left(session, accepted)
    if closed or not anything or not left or (yield q.turn_of_call(call=call)):
        yield q.sweep_at(session=session, sweep=None)
        return False
    yield from turns.ask(Ask(session, TurnKind.ENDING, call, words, owner), at)
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
    rows = yield q.bound_places(session=session)
    moments = []
    for key, since, kind in rows:
        policy = policies.of(Lane.parse(key), Kind(kind))
        last = max(used, since)
        if due(policy, last, at) is None:
            end = ends(policy, last)
            moments.append(_NEVER if end is None else end)
    return max(moments, default=None)


def _left(session: SessionId, accepted: Moment) -> Transaction[bool]:
    """Whether a session is spoken to, or was left because it was over and nothing was asked of it since."""
    if (yield q.bound_places(session=session)):
        return True
    rows = yield q.last_left(session=session)
    return bool(rows) and rows[0][1] in (Why.IDLE, Why.DAILY) and accepted <= rows[0][0]
