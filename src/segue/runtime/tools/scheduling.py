"""Scheduling: an agent has something done later, or again and again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from msgspec import Meta

from segue.core.contracts import Clock, Ids, Transaction
from segue.core.schedules import Plan, shown
from segue.core.values import Moment, SessionId, Value
from segue.runtime.patience import Patient
from segue.runtime.schedules import ORIGIN, Planner
from segue.runtime.tools.table import Calling, Offer
from segue.store import routes, schedules, turns
from segue.store.children import Asker
from segue.store.schedules import Schedule

Real = Callable[[str, SessionId], Awaitable[str]]
"""What an agent said, with the ids that its pseudonyms stand for."""


class ScheduleArguments(Value, frozen=True):
    """What schedule takes."""

    task: Annotated[str, Meta(min_length=1, description="what is to be done then, in full, as you will be asked it.")]
    when: Annotated[
        str,
        Meta(
            description="when: in 2h, at 17:30, tomorrow at 9, 2026-12-24 18:00, every day at 9, every monday at 9:30, "
            "or a cron line of five fields; a time zone's name may follow."
        ),
    ]
    deliver: Annotated[
        str,
        Meta(
            description='where the answer goes: "origin" (here), "local" (a file), a platform for its home, '
            "or PLATFORM:CHAT."
        ),
    ] = ORIGIN


class ListArguments(Value, frozen=True):
    """What schedules_list takes: nothing."""


class CancelArguments(Value, frozen=True):
    """What schedule_cancel takes."""

    id: Annotated[str, Meta(description="the id of the work, as schedules_list shows it.")]


class Scheduling:
    """Schedules work for a turn's person."""

    def __init__(self, store: Patient, planner: Planner, real: Real, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._planner = planner
        self._real = real
        self._clock = clock
        self._ids = ids

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The tools about it."""
        return (
            Offer(
                "schedule",
                "Have something done later, once or again and again. When it is due you are asked the task in a turn "
                "of its own, and your answer is delivered.",
                ScheduleArguments,
                self.schedule,
            ),
            Offer("schedules_list", "List the person's scheduled work to come.", ListArguments, self.list),
            Offer("schedule_cancel", "Cancel scheduled work.", CancelArguments, self.cancel),
        )

    async def schedule(self, calling: Calling, asked: ScheduleArguments) -> dict[str, Any]:
        """Schedule work."""
        # Looked for first: a time that was to come when this was asked first may have passed.
        known = await self._store.read(schedules.known, calling.key)
        if known is not None:
            return _told(known)
        at = self._clock()
        plan = self._planner.plan(asked.when, at)
        deliver = await self._real(asked.deliver, calling.asker.session)
        made = await self._store.write(
            self._make, calling.asker, calling.key, plan, asked.task, deliver, self._ids(), at
        )
        return _told(made)

    async def list(self, calling: Calling, _asked: ListArguments) -> dict[str, Any]:
        """List what is to come."""
        found = await self._store.read(schedules.owned, calling.asker.person)
        return {"schedules": [_told(schedule) for schedule in found]}

    async def cancel(self, calling: Calling, asked: CancelArguments) -> dict[str, Any]:
        """Cancel work."""
        gone = await self._store.write(self._cancel, calling.asker, asked.id, self._clock())
        return {"id": gone.id, "task": gone.task, "state": "cancelled"}

    def _make(
        self, asker: Asker, key: str, plan: Plan, task: str, deliver: str, id: str, at: Moment
    ) -> Transaction[Schedule]:
        yield from turns.check(asker.held)
        asked_in = yield from routes.now(asker.session, (asker.session, asker.turn), asker.home)
        order = yield from self._planner.order(asker.person, asker.session, asked_in, plan, task, deliver)
        return (yield from schedules.make(order, id, key, at))

    def _cancel(self, asker: Asker, id: str, at: Moment) -> Transaction[Schedule]:
        yield from turns.check(asker.held)
        return (yield from schedules.cancel(id, asker.person, at))


def _told(schedule: Schedule) -> dict[str, Any]:
    """What an agent is told of scheduled work."""
    when = shown(schedule.line, schedule.zone, schedule.due or schedule.since)
    return {"id": schedule.id, "task": schedule.task, "when": when, "deliver": schedule.deliver}
