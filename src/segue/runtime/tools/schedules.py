"""Scheduling: an agent has something done later, or again and again."""

from typing import Annotated, Any

from msgspec import Meta

from segue.changes.exchange import schedules
from segue.changes.exchange.planner import ORIGIN, Planner
from segue.changes.exchange.schedules import LOCAL, Schedule
from segue.core.contracts.database import Clock, Ids
from segue.core.lanes import Address
from segue.core.prompt.pseudonyms import Veil
from segue.core.schedules import Plan, shown
from segue.core.values import Value
from segue.errors import Invalid
from segue.runtime.retrying import Patient
from segue.runtime.tools.table import Calling, Offer
from segue.runtime.turns.prompt import Prompt


class ScheduleArguments(Value, frozen=True):
    """Arguments of schedule."""

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


class SchedulesListArguments(Value, frozen=True):
    """Arguments of schedules_list: none."""


class CancelArguments(Value, frozen=True):
    """Arguments of schedule_cancel."""

    id: Annotated[str, Meta(description="the id of the work, as schedules_list shows it.")]


class Scheduling:
    """Schedules work for a turn's person."""

    def __init__(self, store: Patient, planner: Planner, prompt: Prompt, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._planner = planner
        self._prompt = prompt
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
            Offer("schedules_list", "List the person's scheduled work to come.", SchedulesListArguments, self.list),
            Offer("schedule_cancel", "Cancel scheduled work.", CancelArguments, self.cancel),
        )

    async def schedule(self, calling: Calling, asked: ScheduleArguments) -> dict[str, Any]:
        """Schedule work."""
        # Looked for first: a time that was to come when this was asked first may have passed.
        made = await self._store.read(schedules.known, calling.key)
        if made is None:
            plan = self._planner.plan(asked.when, self._clock())
            made = await self._order(calling, plan, asked)
        return _told(made, await self._prompt.veil())

    async def _order(self, calling: Calling, plan: Plan, asked: ScheduleArguments) -> Schedule:
        """Make the work; what is wrong with it is told as the agent named it, not as it is known here."""
        prompt, session = self._prompt, calling.asker.session
        deliver = await prompt.real(asked.deliver, session)
        try:
            return await self._store.write(
                self._planner.make, calling.asker, calling.key, plan, asked.task, deliver, self._ids(), self._clock()
            )
        except Invalid as wrong:
            problem, fix = await prompt.hidden(wrong.problem, session), await prompt.hidden(wrong.fix, session)
            raise Invalid(wrong.field, problem, fix) from wrong

    async def list(self, calling: Calling, _asked: SchedulesListArguments) -> dict[str, Any]:
        """List what is to come."""
        found = await self._store.read(self._planner.known, calling.asker)
        veil = await self._prompt.veil()
        return {"schedules": [_told(schedule, veil) for schedule in found]}

    async def cancel(self, calling: Calling, asked: CancelArguments) -> dict[str, Any]:
        """Cancel work."""
        gone = await self._store.write(self._planner.cancel, calling.asker, asked.id, self._clock())
        return {"id": gone.id, "task": gone.task, "state": "cancelled"}


def _told(schedule: Schedule, veil: Veil) -> dict[str, Any]:
    """Scheduled work as an agent is told of it."""
    when = shown(schedule.line, schedule.zone, schedule.due or schedule.since)
    return {"id": schedule.id, "task": schedule.task, "when": when, "deliver": _destination(schedule, veil)}


def _destination(schedule: Schedule, veil: Veil) -> str:
    """Where the answer goes, by the names that the agent knows."""
    if schedule.deliver in (ORIGIN, LOCAL):
        return schedule.deliver
    there = veil.address(Address.parse(schedule.route))
    return f"{there.platform}.{there.account}" + (f":{there.chat}" if ":" in schedule.deliver else "")
