"""Budgets: turns reserve what they may spend before they spend it, and what isn't used is free again.

Law: a turn reserves under its claim, with all that asks for the same budget in line; what it has reserved counts for
others until the commit that spends it, or until somebody else holds the session.
"""

from segue.changes.exchange import questions, turns
from segue.changes.rows import each, one
from segue.core.contracts.database import Transaction
from segue.core.limits import budgets
from segue.core.limits.budgets import Amount, Budgets, BudgetScope, Edge, Spending
from segue.core.questions import YES, Question
from segue.core.turns import Claim
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q


class Reservation(Value, frozen=True):
    """All that a running turn wants to have reserved: one turn, and its tokens from its first call on."""

    held: Claim
    turn: int
    person: PersonId
    day: str
    tokens: int


def reserve(wanted: Reservation, limits: Budgets) -> Transaction[Edge | None]:
    """Reserve for a turn, in place of what it had reserved; returns the edge of a budget that has no room for it."""
    session, person, day = wanted.held.session, wanted.person, wanted.day
    yield from turns.check(wanted.held)
    scopes = limits.of(session, person, day)
    for _, key in sorted(scopes):
        yield q.hold_name(name=key)
    for (scope, key), amount in scopes.items():
        spent = yield from _spending(scope, key, wanted)
        if scope is BudgetScope.SESSION and not spent.turns:
            # Perhaps the budget is younger than the session.
            yield q.open_spending(scope=key, session=session)
            spent = yield from _spending(scope, key, wanted)
        edge = budgets.edge(scope, key, amount, spent, wanted.tokens)
        if edge is not None:
            return edge
    epoch, tokens = wanted.held.epoch, wanted.tokens
    yield q.reserve(session=session, turn=wanted.turn, epoch=epoch, person=person, day=day, tokens=tokens)
    return None


def _spending(scope: BudgetScope, key: str, wanted: Reservation) -> Transaction[Spending]:
    # Nothing else runs in the same session; the person of the scope of all is nobody.
    day = "" if scope is BudgetScope.SESSION else wanted.day
    person = wanted.person if scope is BudgetScope.PERSON else ""
    return (yield from one(Spending, q.spending(scope=key, session=wanted.held.session, day=day, person=person)))


def allow(edge: Edge, by: str, at: Moment) -> Transaction[None]:
    """The host allows more: once, however many turns stand before the same edge, and all of them go on."""
    yield q.allow_more(scope=edge.key, helpings=edge.helpings)
    for question in (yield from each(Question, q.open_of_call(call=edge.call))):
        yield from questions.answer(question, YES, by, "", at)


def refuse(edge: Edge, day: str) -> Transaction[None]:
    """The host allows no more today."""
    yield q.refuse_more(scope=edge.key, day=day)


def standing(
    session: SessionId, person: PersonId, day: str, limits: Budgets
) -> Transaction[list[tuple[BudgetScope, Amount, Spending]]]:
    """The budgets of a session and its person, as they are used by now, turns that run here included."""
    nobody = Reservation(Claim(SessionId(""), "", 0), 0, person, day, 0)
    found: list[tuple[BudgetScope, Amount, Spending]] = []
    for (scope, key), amount in limits.of(session, person, day).items():
        found.append((scope, amount, (yield from _spending(scope, key, nobody))))
    return found
