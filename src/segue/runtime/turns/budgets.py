"""Budgets: a turn reserves what it may spend, and at the edge of a budget it pauses until the host has answered.

Law: no call is made before its reservation is committed. After a kill the turn runs again, reserves anew and stands
before the same question.
"""

from segue.changes.exchange.questions import Asking
from segue.changes.sessions import budgets
from segue.changes.sessions.budgets import Reservation
from segue.core.limits.budgets import Edge, day_of
from segue.core.questions import YES, YES_OR_NO
from segue.core.values import PersonId
from segue.errors import Invalid, OverBudget
from segue.runtime.parts import Ground
from segue.runtime.turns.asking import Askers
from segue.runtime.turns.running import Running


class TurnBudget:
    """Reserves for one attempt at a turn."""

    def __init__(self, ground: Ground, askers: Askers, live: Running) -> None:
        self._ground = ground
        self._askers = askers
        self._live = live
        self._bounds: list[int] = []
        """What each call may take at most; the first ones are those whose cost is known by now."""
        self._day = day_of(ground.clock(), ground.settings.zone)

    async def reserve(self, tokens: int | None = None) -> None:
        """Reserve a call of so many tokens; raises `OverBudget` if there is no room and the host allows no more."""
        store, limits = self._ground.store, self._ground.settings.budget
        self._bounds += [tokens] if tokens is not None else []
        while (edge := await store.write(budgets.reserve, self._wanted, limits)) is not None:
            await self._pause(edge)
        self._live.reserved = True

    @property
    def _wanted(self) -> Reservation:
        run, spent = self._live.run, self._live.spent
        known = sum(used.input + used.output for used in spent)
        tokens = known + sum(self._bounds[len(spent) :])
        return Reservation(run.held, run.name, PersonId(run.turns[0].person), self._day, tokens)

    async def _pause(self, edge: Edge) -> None:
        """Wait for the host's yes."""
        ground, live = self._ground, self._live
        hosts = tuple(identity.key for identity in ground.settings.hosts)
        own = live.run.turns[0].identity in hosts
        if not hosts or (edge.refused == self._day and not own):
            raise OverBudget(edge.problem)
        deadline = ground.settings.questions.deadline
        asking = Asking(edge.call, edge.question, YES_OR_NO, deadline=deadline, approvers=hosts)
        try:
            answer = await self._askers.ask(live, asking)
        except Invalid as error:
            raise OverBudget(edge.problem) from error
        if answer != YES:
            await ground.store.write(budgets.refuse, edge, self._day)
            raise OverBudget(f"{edge.problem} Nobody allowed more.")
        await ground.store.write(budgets.allow, edge, "", ground.clock())
