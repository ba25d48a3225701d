"""Commands for scheduled work: /schedule and /schedules."""

import re

from segue.changes.commands.request import MORE, Answer, Request, bound, line_of, listing, short
from segue.changes.exchange import readers, schedules
from segue.changes.exchange.planner import ORIGIN, Planner
from segue.changes.exchange.schedules import LOCAL, Schedule
from segue.core.contracts.database import Ids, Transaction
from segue.core.schedules import shown

# Phones write two hyphens as one dash.
_TO = re.compile(r"\s(?:--|—|\u2013)to\s+(?P<to>\S+)\s*$")


class ScheduleCommands:
    """Has things done later."""

    def __init__(self, planner: Planner, ids: Ids) -> None:
        self._planner = planner
        self._ids = ids

    def schedule(self, request: Request) -> Transaction[Answer]:
        if not request.rest:
            return Answer("Type /schedule WHEN TASK, such as /schedule every day at 9 tell me the news.")
        to = _TO.search(request.rest)
        text = request.rest[: to.start()] if to else request.rest
        plan, task = self._planner.divide(text, request.at)
        session = yield from bound(request)
        asked_in = request.lane.key, request.lane.address.key
        person, deliver = request.met.person.id, to["to"] if to else ORIGIN
        order = yield from self._planner.order(person, session.id, asked_in, plan, task, deliver)
        made = yield from schedules.make(order, self._ids(), f"command/{request.trace}", request.at)
        return Answer(f"Scheduled: {_line(made)}. /schedules lists it.")

    def schedules(self, request: Request) -> Transaction[Answer]:
        person, (word, _, rest) = request.met.person.id, request.rest.partition(" ")
        if word == "cancel" and rest.strip().isdecimal():
            id = yield from schedules.on_line(request.lane, person, line_of(rest.strip()))
            gone = yield from schedules.cancel(id, person, request.at)
            known = yield from readers.sees(request.reader, gone)
            return Answer(f"Cancelled: {short(gone.task)}" if known else "Cancelled.")
        if word:
            return Answer("Type /schedules, or /schedules cancel N.")
        found = yield from schedules.owned(person)
        if not found:
            return Answer("You have nothing scheduled. /schedule WHEN TASK does something later.")
        listed = yield from readers.seen(request.reader, found)
        for lane in request.shown_in:
            yield from schedules.keep_list(lane, person, listed, request.at)
        lines = [f"{number}. {_line(schedule)}" for number, schedule in enumerate(listed, 1)]
        how = "/schedules cancel N cancels one of them." if lines else "You scheduled nothing here."
        return Answer(listing(lines, how, *([MORE] if len(listed) < len(found) else [])))


def _line(schedule: Schedule) -> str:
    to = {ORIGIN: "", LOCAL: ", to a file"}.get(schedule.deliver, f", to {schedule.deliver}")
    return f"{shown(schedule.line, schedule.zone, schedule.due or schedule.since)}{to}: {short(schedule.task)}"
