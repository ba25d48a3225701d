"""When scheduled work is due: what people write about a time, read into one moment or a cron line in a time zone.

Law: a plan is one moment, or a cron line of five fields in a named zone. Where clocks skip a time it is the first
moment after the gap; where they repeat it, the first of the two. A plan is shown in words that are read back as the
same plan.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from segue.core.prompt.section import quoted
from segue.core.resets import strikes, time_zone
from segue.core.values import LAST_MOMENT, Moment, Value
from segue.errors import Invalid

ONCE = ""
"""The line of work that is done once."""
LONGEST_TASK = 10_000
MOST_MISSED = 1000
"""Times that are counted when nobody ran: more aren't worth telling apart."""
_EXAMPLES = (
    "Write it like: in 2h, at 17:30, tomorrow at 9, 2026-12-24 18:00, every day at 9, every monday at 9:30, "
    "every month on the 1st at 9, or a cron line."
)
_MOST_WORDS = 20
_LONGEST = 200
"""Characters of a time: nothing longer is read."""
_MOST_LISTED = 6
"""Dates or times of day that are listed in words."""
_LOOKED_AHEAD = 60
_FARTHEST = 3660 * 86400
"""Seconds ahead that work may be due."""
_LATE = 60.0
"""Seconds after which work counts as late."""

_UNITS = {
    "m": 60,
    "min": 60,
    "minute": 60,
    "h": 3600,
    "hour": 3600,
    "d": 86400,
    "day": 86400,
    "w": 604800,
    "week": 604800,
}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEK = (1, 2, 3, 4, 5, 6, 0)
"""The days of a week as cron numbers them, from Monday on."""
_SETS = {"day": ("*", set(_WEEK)), "weekday": ("1-5", {1, 2, 3, 4, 5}), "weekend": ("6,0", {6, 0})}
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DAY_NUMBERS = {name[:3]: number for name, number in zip(_DAYS, _WEEK, strict=True)}
_MONTH_NUMBERS = {name[:3]: number for number, name in enumerate(_MONTHS, 1)}
_ENDINGS = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}
_TH = "th"

_CLOCK = r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))? ?(?P<half>am|pm)?"
_AT = re.compile(rf"(?:(?P<day>today|tomorrow) )?at {_CLOCK}")
_DATE = re.compile(rf"(?:(?:at|on) )?(?P<date>\d{{4}}-\d{{2}}-\d{{2}})(?:t| | at ){_CLOCK}")
_IN = re.compile(r"in (?P<count>\d{1,6}|an?) ?(?P<unit>[a-z]+?)s?")
_CLOCKS = r"at (?P<clocks>\d[\d:apmnd, ]*)"
_EVERY = re.compile(rf"every (?P<days>[a-z, ]+) {_CLOCKS}")
_MONTHLY = re.compile(rf"every month on the (?P<dates>\d[\dstnrdha, ]*) {_CLOCKS}")
_YEARLY = re.compile(rf"every year on (?P<date>\d{{1,2}}) (?P<month>[a-z]+) {_CLOCKS}")
_PERIOD = re.compile(
    r"every (?:(?P<count>\d{1,2}) ?)?(?P<unit>m|min|minute|h|hour)s?(?: at minute (?P<minute>\d{1,2}))?"
)
_ONE_CLOCK = re.compile(_CLOCK)
_DATE_NUMBER = re.compile(r"(?P<number>\d{1,2})(?:st|nd|rd|th)?")
_AND = re.compile(r",? and |, ?")
_NUMBERS = re.compile(r"(?P<first>\d{1,2}|[a-z]{3})(?:-(?P<last>\d{1,2}|[a-z]{3}))?")
_ZONE = re.compile(r"[a-zA-Z][^/()]*/\S*|\(\S+\)[.:,]?|UTC[.:,]?")
_CRON = re.compile(r"[\d*]\S*(?: [\d*a-z]\S*){4}")


class Plan(Value, frozen=True):
    """When something is due, and by which line it is due again; an empty line is once."""

    due: Moment
    line: str
    zone: str


def plan(when: str, zone: str, now: Moment) -> Plan:
    """Somebody's words about a time; a zone's name at their end is the zone that they are meant in."""
    if len(when) > _LONGEST:
        raise Invalid("when", f"it has {len(when)} characters", f"Keep it to {_LONGEST}. {_EXAMPLES}")
    found = _read(when.split(), zone, now)
    if found is None:
        raise Invalid("when", f'"{when[:60]}" is not a time' if when.strip() else "there is no time in it", _EXAMPLES)
    return found


def divide(text: str, zone: str, now: Moment) -> tuple[Plan, str]:
    """A time and the task that follows it: the longest beginning that is a time."""
    words = text.split()
    mistakes: list[Invalid] = []
    for count in range(min(_MOST_WORDS, len(words)), 0, -1):
        try:
            found = _read(words[:count], zone, now)
        except Invalid as mistake:
            mistakes.append(mistake)
            continue
        if found is not None:
            task = " ".join(words[count:]).lstrip(":,- ")
            if not task:
                raise Invalid("task", "there is nothing to do at that time", "Write the time, then what is to be done.")
            return found, task
    if mistakes:
        raise mistakes[-1]
    raise Invalid("when", f'"{text[:60]}" begins with no time', _EXAMPLES)


def following(line: str, zone: str, after: Moment) -> Moment | None:
    """When a line is due next after a moment; None if never again."""
    if line == ONCE:
        return None
    begin = datetime.fromtimestamp(int(after), time_zone(zone))
    for found in _simulated(line, begin):
        moment = found.timestamp()
        if moment > after:
            return moment
    return None


def closest(plan: Plan) -> float:
    """Seconds between the two closest of the next times at which something is due; endless if it is due once."""
    if plan.line == ONCE:
        return float("inf")
    begin = datetime.fromtimestamp(int(plan.due), time_zone(plan.zone))
    due = [found.timestamp() for found in islice(_simulated(plan.line, begin), _LOOKED_AHEAD)]
    return min((later - earlier for earlier, later in pairwise(due)), default=float("inf"))


def missed(line: str, zone: str, due: Moment, now: Moment) -> tuple[Moment, int]:
    """The last time by now that a line was due since a time that nobody heeded, and how many lie before it."""
    if line == ONCE:
        return due, 0
    count, last = 0, due
    for found in _simulated(line, datetime.fromtimestamp(int(due), time_zone(zone))):
        moment = found.timestamp()
        if moment > now:
            return last, count
        if moment > last:
            count, last = count + 1, moment
        if count >= MOST_MISSED:
            break
    return _last(line, zone, now) or last, count


def shown(line: str, zone: str, due: Moment) -> str:
    """A plan as people read it."""
    at = _clock(zone, due)
    return f"{at} ({zone})" if line == ONCE else f"{worded(line)} ({zone}), next {at}"


def worded(line: str) -> str:
    """A cron line in words that are read back as the same times; the line itself if it has none."""
    minute, hour, date, month, day = (line.split() + [""] * 5)[:5]
    if date == month == day == "*" and (period := _period_words(minute, hour)):
        return period
    hours, dates = _numbers(hour, {}), _numbers(date, {})
    days, months = _numbers(day, _DAY_NUMBERS), _numbers(month, _MONTH_NUMBERS)
    if not minute.isdecimal() or not hours or max(len(hours), len(dates)) > _MOST_LISTED:
        return line
    at = f"at {_listed([f'{each:02}:{int(minute):02}' for each in hours])}"
    if date == month == "*" and (days or day == "*"):
        return f"every {_day_words({each % 7 for each in days or _WEEK})} {at}"
    if day == month == "*" and dates:
        return f"every month on the {_listed([f'{each}{_ENDINGS.get(each, _TH)}' for each in dates])} {at}"
    if day == "*" and len(dates) == len(months) == 1:
        return f"every year on {dates[0]} {_MONTHS[months[0] - 1]} {at}"
    return line


def _period_words(minute: str, hour: str) -> str:
    """Words for a line that is due every so many minutes or hours; empty if it isn't one."""
    by_hours = minute.isdecimal()
    step, whole, unit = (hour, 24, "hour") if by_hours else (minute, 60, "minute")
    count = "1" if step == "*" else step.removeprefix("*/")
    if step[:1] != "*" or not count.isdecimal() or not 0 < int(count) < whole or whole % int(count):
        return ""
    if not by_hours and hour != "*":
        return ""
    words = f"every {unit}" if int(count) == 1 else f"every {int(count)} {unit}s"
    return f"{words} at minute {int(minute)}" if by_hours and int(minute) else words


def _numbers(field: str, names: Mapping[str, int]) -> list[int]:
    """The numbers that a field of a cron line lists, in order; none if it says something else."""
    numbers: set[int] = set()
    for piece in field.split(","):
        found = _NUMBERS.fullmatch(piece)
        ends = [word for word in (found["first"], found["last"]) if word] if found else []
        if not ends or not all(word.isdecimal() or word in names for word in ends):
            return []
        known = [int(word) if word.isdecimal() else names[word] for word in ends]
        numbers.update(range(known[0], known[-1] + 1))
    return sorted(numbers)


def _day_words(days: set[int]) -> str:
    """Days of the week in words."""
    for word, (_, members) in _SETS.items():
        if days == members:
            return word
    return _listed([name for name, number in zip(_DAYS, _WEEK, strict=True) if number in days])


def _listed(words: Sequence[str]) -> str:
    *before, last = words
    return f"{', '.join(before)} and {last}" if before else last


def _clock(zone: str, at: Moment) -> str:
    """The clock and the calendar of a zone."""
    return datetime.fromtimestamp(min(at, LAST_MOMENT), time_zone(zone)).strftime("%Y-%m-%d %H:%M")


def _last(line: str, zone: str, now: Moment) -> Moment | None:
    """The last time by now that a line was due, looked for further and further back."""
    for back in (3600, 86400, 31 * 86400, 366 * 86400, 8 * 366 * 86400):
        found = following(line, zone, now - back)
        if found is not None and found <= now:
            while (later := following(line, zone, found)) is not None and later <= now:
                found = later
            return found
    return None


def asked(task: str, line: str, zone: str, due: Moment, now: Moment, count: int) -> str:
    """The prompt for an agent when scheduled work is due; the task is data, whoever wrote it."""
    words = f"Scheduled work is due. Do it now and answer with its result: {quoted(task)}"
    again = "" if line == ONCE else f" It is due again and again ({worded(line)}, {zone})."
    return f"{words}{again}{late(zone, due, now, count)}"


def late(zone: str, due: Moment, now: Moment, count: int) -> str:
    """A line about work that wasn't done each time when it was due; empty if it was."""
    told = ""
    if now - due > _LATE:
        told = f" It was due at {_clock(zone, due)} ({zone}), when no gateway ran."
    if count:
        many = "once" if count == 1 else f"{count} times" if count < MOST_MISSED else f"{count} times or more"
        told += f" Before that it was missed {many}."
    return told


def _read(words: Sequence[str], zone: str, now: Moment) -> Plan | None:
    """A time, if these words are one; raises `Invalid` if they are one that can't be."""
    if sum(map(len, words)) > _LONGEST:
        return None
    *before, last = words or [""]
    if _ZONE.fullmatch(last):
        zone, words = last.strip("().:,"), before
    flat = " ".join(words).casefold().rstrip(".:,")
    for pattern, read in _FORMS:
        if found := pattern.fullmatch(flat):
            due, line = read(found, time_zone(zone), now)
            return Plan(due, line, zone)
    return None


def _simulated(line: str, begin: datetime) -> CronSim:
    try:
        return CronSim(line, begin)
    except CronSimError as error:
        fix = "Give minute, hour, day, month and weekday, like 0 9 * * 1-5."
        raise Invalid("when", f'"{line}" is not a cron line ({str(error).lower()})', fix) from error


Read = Callable[[re.Match[str], ZoneInfo, Moment], tuple[Moment, str]]


def _in(found: re.Match[str], _zone: ZoneInfo, now: Moment) -> tuple[Moment, str]:
    size = _UNITS.get(found["unit"])
    if size is None:
        raise Invalid("when", f'"{found["unit"]}" is not a length of time', "Write m, h, d or w: in 90m, in 2h.")
    count = 1 if found["count"].startswith("a") else int(found["count"])
    return _ahead(now + count * size, now, found[0]), ONCE


def _at(found: re.Match[str], zone: ZoneInfo, now: Moment) -> tuple[Moment, str]:
    today = datetime.fromtimestamp(now, zone).date()
    day = today + timedelta(days=1) if found["day"] == "tomorrow" else today
    moment = strikes(datetime.combine(day, _time(found), zone))
    if moment <= now and not found["day"]:
        moment = strikes(datetime.combine(day + timedelta(days=1), _time(found), zone))
    return _ahead(moment, now, found[0]), ONCE


def _on(found: re.Match[str], zone: ZoneInfo, now: Moment) -> tuple[Moment, str]:
    try:
        day = date.fromisoformat(found["date"])
        moment = strikes(datetime.combine(day, _time(found), zone))
    except (ValueError, OverflowError) as error:
        raise Invalid("when", f"{found['date']} is not a date", "Write it as YEAR-MONTH-DAY.") from error
    return _ahead(moment, now, found[0]), ONCE


def _every(found: re.Match[str], zone: ZoneInfo, now: Moment) -> tuple[Moment, str]:
    named = [word for word in re.split(r"[, ]+", found["days"]) if word not in ("", "and")]
    days = set[int]().union(*(_weekdays(word) for word in named or [found["days"]]))
    known = [line for line, members in _SETS.values() if members == days]
    line = known[0] if known else ",".join(str(day) for day in _WEEK if day in days)
    return _cron(f"{_clocks(found)} * * {line}", zone, now)


def _monthly(found: re.Match[str], zone: ZoneInfo, now: Moment) -> tuple[Moment, str]:
    dates = [_DATE_NUMBER.fullmatch(word) for word in _AND.split(found["dates"])]
    numbers = sorted({int(date["number"]) for date in dates if date})
    if not all(dates) or not 1 <= numbers[0] <= numbers[-1] <= 31:
        raise Invalid("when", f"{found['dates']} is not a day of a month", "Write it like: on the 1st and 15th.")
    return _cron(f"{_clocks(found)} {','.join(map(str, numbers))} * *", zone, now)


def _yearly(found: re.Match[str], zone: ZoneInfo, now: Moment) -> tuple[Moment, str]:
    months = [n for n, name in enumerate(_MONTHS, 1) if found["month"] in (name, name[:3])]
    if not months:
        raise Invalid("when", f'"{found["month"]}" is not a month', f"Write one of {', '.join(_MONTHS)}.")
    return _cron(f"{_clocks(found)} {int(found['date'])} {months[0]} *", zone, now)


def _clocks(found: re.Match[str]) -> str:
    """The minute and the hours of a line, from one or several times of day; all but the first are written in full."""
    words = _AND.split(found["clocks"])
    clocks = [_ONE_CLOCK.fullmatch(word) for word in words]
    times = sorted({_time(clock) for clock in clocks if clock})
    if not all(clocks) or not all(":" in word for word in words[1:]):
        raise Invalid("when", f"{found['clocks']} is not a time of day", "Write it like: at 9:00 and 17:00.")
    if len({clock.minute for clock in times}) > 1:
        raise Invalid("when", f"{found['clocks']} differ in their minutes", "Schedule them apart.")
    return f"{times[0].minute} {','.join(str(clock.hour) for clock in times)}"


def _period(found: re.Match[str], zone: ZoneInfo, now: Moment) -> tuple[Moment, str]:
    count, hours, minute = int(found["count"] or 1), found["unit"].startswith("h"), int(found["minute"] or 0)
    whole = 24 if hours else 60
    if not 0 < count < whole or whole % count:
        fix = "Take a number that divides a day's 24 hours or an hour's 60 minutes, or write a cron line."
        raise Invalid("when", f"{found[0]} doesn't come out even", fix)
    if minute > 59 or (found["minute"] and not hours):
        raise Invalid("when", f"{found[0]} has no such minute", "Write it like: every 2 hours at minute 30.")
    step = "*" if count == 1 else f"*/{count}"
    return _cron(f"{minute} {step} * * *" if hours else f"{step} * * * *", zone, now)


def _line(found: re.Match[str], zone: ZoneInfo, now: Moment) -> tuple[Moment, str]:
    return _cron(found[0], zone, now)


_FORMS: tuple[tuple[re.Pattern[str], Read], ...] = (
    (_IN, _in),
    (_AT, _at),
    (_DATE, _on),
    (_PERIOD, _period),
    (_MONTHLY, _monthly),
    (_YEARLY, _yearly),
    (_EVERY, _every),
    (_CRON, _line),
)


def _cron(line: str, zone: ZoneInfo, now: Moment) -> tuple[Moment, str]:
    due = following(line, zone.key, now)
    if due is None:
        raise Invalid("when", f'"{line}" is never due', "See its day and month: no such date comes.")
    return due, line


def _time(found: re.Match[str]) -> time:
    hour, minute = int(found["hour"]), int(found["minute"] or 0)
    half = found["half"]
    if half and 1 <= hour <= 12:
        hour = hour % 12 + (12 if half == "pm" else 0)
    elif half:
        hour = 24
    if hour > 23 or minute > 59:
        said = f"{found['hour']}:{found['minute'] or '00'}{half or ''}"
        raise Invalid("when", f"{said} is not a time of day", "Write one from 0:00 to 23:59, or with am or pm.")
    return time(hour, minute)


def _weekdays(word: str) -> set[int]:
    if word in _SETS:
        return _SETS[word][1]
    for name, number in zip(_DAYS, _WEEK, strict=True):
        if word in (name, name + "s", name[:3]):
            return {number}
    raise Invalid("when", f'"{word}" is not a day', f"Write day, weekday, weekend or one of {', '.join(_DAYS)}.")


def _ahead(moment: Moment, now: Moment, said: str) -> Moment:
    if moment <= now:
        raise Invalid("when", f"{said} has passed", "Choose a time that is still to come.")
    if moment > now + _FARTHEST:
        raise Invalid("when", f"{said} is too far away", "Choose a time within ten years.")
    return moment
