"""Budgets: how much may be spent in a session, by one person in a day, and by everybody in a day.

Law: what is spent and what is reserved never come to more turns or tokens than a budget has, with the helpings that the
host allowed beside it. What a call costs is known only when it is over, so the last one may pass a limit of cost; so
may one whose agent doesn't say how many tokens it takes at most.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from segue.core.resets import time_zone
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.errors import Invalid

Whole = Annotated[int, Meta(ge=1, le=10**15)]
Dollars = Annotated[float, Meta(gt=0, le=10**9)]


class Amount(Value, frozen=True):
    """{ tokens = N, cost = DOLLARS, turns = N }: as much as may be spent; what isn't named has no limit."""

    tokens: Whole | None = None
    cost: Dollars | None = None
    turns: Whole | None = None

    def __post_init__(self) -> None:
        if (self.tokens, self.cost, self.turns) == (None, None, None):
            raise Invalid("turns", "the budget limits nothing", "Give it tokens, cost or turns.")


class BudgetScope(StrEnum):
    """Extents of a budget."""

    SESSION = "session"
    PERSON = "person"
    """One person, in a day."""
    DAY = "day"
    """Everybody, in a day."""


class Budgets(Value, frozen=True):
    """[budget]: how much may be spent; none by default."""

    session: Amount | None = None
    person_day: Amount | None = None
    day: Amount | None = None

    @property
    def any(self) -> bool:
        """Whether there is a budget at all."""
        return self != NONE

    def of(self, session: SessionId, person: PersonId, day: str) -> Mapping[tuple[BudgetScope, str], Amount]:
        """The budgets that a turn is spent from, each by its scope and the key of its account."""
        known = {
            (BudgetScope.SESSION, f"session/{session}"): self.session,
            (BudgetScope.PERSON, f"person/{person}/{day}"): self.person_day,
            (BudgetScope.DAY, f"day/{day}"): self.day,
        }
        return {scope: amount for scope, amount in known.items() if amount is not None}


NONE = Budgets()


class Spending(Value, frozen=True):
    """What a budget is used for by now."""

    turns: int = 0
    tokens: int = 0
    cost: float = 0.0
    helpings: int = 0
    """How often as much again was allowed."""
    refused: str = ""
    """The day on which the host said no to more; empty if that never was."""
    reserved_turns: int = 0
    """Turns that run now, this one left out."""
    reserved_tokens: int = 0


class Edge(Value, frozen=True):
    """The edge of a budget, at which a turn pauses."""

    scope: BudgetScope
    key: str
    """The key of the budget's account."""
    unit: str
    used: float
    most: float
    wanted: float
    helpings: int
    """Helpings after which there is room for what is wanted."""
    more: float
    """What those helpings add to the budget."""
    refused: str

    @property
    def call(self) -> str:
        """The key of the question about it: the same for all who stand before the same edge."""
        return f"budget/{self.key}/{self.unit}/{self.helpings}"

    @property
    def problem(self) -> str:
        """What is used up, in words."""
        used, most = _number(self.used, self.unit), _shown(self.most, self.unit)
        wants = f", and the next call may take {_number(self.wanted, self.unit)}" if self.unit == "tokens" else ""
        return f"The budget {_OF[self.scope]} is used up: {used} of {most}{wants}."

    @property
    def question(self) -> str:
        """The words with which the host is asked."""
        return f"{self.problem} Allow {_shown(self.more, self.unit)} more?"


_OF = {
    BudgetScope.SESSION: "of this session",
    BudgetScope.PERSON: "of this person for today",
    BudgetScope.DAY: "for today",
}


def edge(scope: BudgetScope, key: str, amount: Amount, spent: Spending, tokens: int) -> Edge | None:
    """The edge that one turn more with so many tokens would pass; None if there is room for it."""
    wants = (
        ("turns", amount.turns, spent.turns + spent.reserved_turns, 1),
        ("tokens", amount.tokens, spent.tokens + spent.reserved_tokens, max(tokens, 1)),
        ("cost", amount.cost, spent.cost, 0),
    )
    for unit, one, used, wanted in wants:
        if one is None:
            continue
        most = one * (1 + spent.helpings)
        if used + wanted > most or (unit == "cost" and used >= most):
            helpings = max(int(-((used + wanted) // -one)) - 1, spent.helpings + 1)
            more = one * (helpings - spent.helpings)
            return Edge(scope, key, unit, used, most, wanted, helpings, more, spent.refused)
    return None


def day_of(at: Moment, zone: str) -> str:
    """The day of a moment, as budgets count days: those of a time zone."""
    return datetime.fromtimestamp(at, time_zone(zone)).date().isoformat()


def told(scope: BudgetScope, amount: Amount, spent: Spending) -> str:
    """A budget in one line, for a person."""
    helping, parts = 1 + spent.helpings, []
    if amount.turns is not None:
        parts.append(f"{spent.turns + spent.reserved_turns:,} of {amount.turns * helping:,} turns")
    if amount.tokens is not None:
        reserved = f" (and {spent.reserved_tokens:,} reserved)" if spent.reserved_tokens else ""
        parts.append(f"{spent.tokens:,} of {amount.tokens * helping:,} tokens{reserved}")
    if amount.cost is not None:
        parts.append(f"${spent.cost:,.2f} of ${amount.cost * helping:,.2f}")
    return f"Budget {_OF[scope].replace('this person', 'yours')}: {', '.join(parts)}."


def _number(value: float, unit: str) -> str:
    return f"${value:,.2f}" if unit == "cost" else f"{int(value):,}"


def _shown(value: float, unit: str) -> str:
    return _number(value, unit) if unit == "cost" else f"{_number(value, unit)} {unit}"
