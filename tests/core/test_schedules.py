"""Times as people write them: read right in every zone, and refused in words that name what is wrong."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core import schedules
from segue.core.schedules import MOST_MISSED, ONCE, divide, following, late, missed, plan, shown, worded
from segue.errors import Invalid

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 3, 28, 20, 0, tzinfo=BERLIN).timestamp()
"""The evening before the clocks there go forward."""


def local(text: str, zone: str = "Europe/Berlin") -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("when", "line", "due"),
    [
        ("in 2h", ONCE, "2026-03-28T22:00"),
        ("in 90 minutes", ONCE, "2026-03-28T21:30"),
        ("in an hour", ONCE, "2026-03-28T21:00"),
        ("In 8 hours.", ONCE, "2026-03-29T05:00"),
        ("at 21", ONCE, "2026-03-28T21:00"),
        ("at 9", ONCE, "2026-03-29T09:00"),
        ("at 9:30 pm", ONCE, "2026-03-28T21:30"),
        ("at 12am", ONCE, "2026-03-29T00:00"),
        ("today at 23:59", ONCE, "2026-03-28T23:59"),
        ("tomorrow at 2:30", ONCE, "2026-03-29T03:00"),
        ("2026-12-24 18:00", ONCE, "2026-12-24T18:00"),
        ("on 2026-12-24 at 18", ONCE, "2026-12-24T18:00"),
        ("every day at 9", "0 9 * * *", "2026-03-29T09:00"),
        ("every monday at 9:30", "30 9 * * 1", "2026-03-30T09:30"),
        ("every monday and friday at 9", "0 9 * * 1,5", "2026-03-30T09:00"),
        ("every monday, tuesday, and friday at 9", "0 9 * * 1,2,5", "2026-03-30T09:00"),
        ("every sun at 9", "0 9 * * 0", "2026-03-29T09:00"),
        ("every weekday at 8am", "0 8 * * 1-5", "2026-03-30T08:00"),
        ("every hour", "0 * * * *", "2026-03-28T21:00"),
        ("every 15 minutes", "*/15 * * * *", "2026-03-28T20:15"),
        ("30 2 * * *", "30 2 * * *", "2026-03-29T03:00"),
        ("every friday, monday and mon at 9:00 and 17:00", "0 9,17 * * 1,5", "2026-03-30T09:00"),
        ("every saturday and sunday at 9", "0 9 * * 6,0", "2026-03-29T09:00"),
        ("every month on the 15th and 1st at 9", "0 9 1,15 * *", "2026-04-01T09:00"),
        ("every year on 24 december at 18", "0 18 24 12 *", "2026-12-24T18:00"),
        ("every 2 hours at minute 30", "30 */2 * * *", "2026-03-28T20:30"),
        ("0 9 * * mon-fri", "0 9 * * mon-fri", "2026-03-30T09:00"),
    ],
)
def test_a_time_is_read(when: str, line: str, due: str) -> None:
    assert plan(when, "Europe/Berlin", NOW) == schedules.Plan(local(due), line, "Europe/Berlin")


def test_work_beyond_the_last_year_that_a_date_can_have_is_shown() -> None:
    assert shown(ONCE, "America/New_York", local("9999-12-31T23:59", "America/New_York")).startswith("999")


def test_a_zone_at_the_end_is_the_zone_that_is_meant() -> None:
    found = plan("every day at 9 America/New_York", "Europe/Berlin", NOW)
    assert (found.zone, found.due) == ("America/New_York", local("2026-03-29T09:00", "America/New_York"))


@pytest.mark.parametrize(
    ("when", "told"),
    [
        ("", "there is no time in it"),
        ("soon", '"soon" is not a time'),
        ("in 5 parsecs", '"parsec" is not a length of time'),
        ("in 999999 weeks", "too far away"),
        ("in 0 minutes", "in 0 minutes has passed"),
        ("9999-12-31 23:59 America/New_York", "9999-12-31 23:59 is too far away"),
        ("9999-12-31 23:59 Pacific/Kiritimati", "9999-12-31 23:59 is too far away"),
        ("0001-01-01 0:00 Pacific/Kiritimati", "0001-01-01 0:00 has passed"),
        (f"{'1' * 5000} * * * *", "it has 5008 characters"),
        ("at 25", "25:00 is not a time of day"),
        ("at 13pm", "13:00pm is not a time of day"),
        ("at 9:75", "9:75 is not a time of day"),
        ("today at 9", "today at 9 has passed"),
        ("2020-01-01 10:00", "2020-01-01 10:00 has passed"),
        ("2026-02-30 10:00", "2026-02-30 is not a date"),
        ("every sunnday at 9", '"sunnday" is not a day'),
        ("every and at 9", '"and" is not a day'),
        ("every " + "a and " * 26 + "!", "is not a time"),
        ("every day at 9" + " " * 200, "it has 214 characters"),
        ("every 7 minutes", "doesn't come out even"),
        ("every day at 9:00 and 17:30", "differ in their minutes"),
        ("every month on the 32nd at 9", "32nd is not a day of a month"),
        ("every year on 1 brumaire at 9", '"brumaire" is not a month'),
        ("every 5 minutes at minute 3", "has no such minute"),
        ("61 * * * *", '"61 * * * *" is not a cron line (bad minute)'),
        ("0 0 30 2 *", "is not a cron line"),
        ("at 9 Mars/Base", "'Mars/Base' is not a time zone"),
    ],
)
def test_a_mistake_is_named(when: str, told: str) -> None:
    with pytest.raises(Invalid) as caught:
        plan(when, "Europe/Berlin", NOW)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("text", "task"),
    [
        ("in 2h call mum", "call mum"),
        ("every day at 9: tell me the news", "tell me the news"),
        ("0 9 * * 1-5 stand up", "stand up"),
        ("at 9 30 eggs", "30 eggs"),
        ("every day at 9, 10 push-ups", "10 push-ups"),
        ("every day at 9 and walk", "and walk"),
        ("every weekday at 09:00 (Europe/Berlin) stand up", "stand up"),
        ("at 9 (call mum)", "(call mum)"),
        ("every monday at 9 Europe/Lisbon write a report", "write a report"),
        ("tomorrow at 9, wake me at 10", "wake me at 10"),
    ],
)
def test_a_task_follows_its_time(text: str, task: str) -> None:
    assert divide(text, "UTC", NOW)[1] == task


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("call mum", "begins with no time"),
        ("in 2h", "there is nothing to do"),
        ("at 25 call mum", "25:00 is not a time of day"),
        ("every " + "a" * 100_000 + " at 9 call mum", "begins with no time"),
        ("", "begins with no time"),
    ],
)
def test_what_is_missing_is_named(text: str, told: str) -> None:
    with pytest.raises(Invalid) as caught:
        divide(text, "UTC", NOW)
    assert told in str(caught.value)


def test_missed_times_are_counted_and_the_last_of_them_is_the_one_to_do() -> None:
    first = local("2026-03-28T21:00")
    assert missed("0 * * * *", "Europe/Berlin", first, first + 30) == (first, 0)
    assert missed("0 * * * *", "Europe/Berlin", first, first + 5 * 3600 + 30) == (first + 5 * 3600, 5)
    assert missed(ONCE, "Europe/Berlin", first, first + 1e6) == (first, 0)
    year = first + 366 * 86400
    assert missed("* * * * *", "Europe/Berlin", first, year + 30) == (year, MOST_MISSED)


def test_what_is_late_is_told() -> None:
    due = local("2026-03-28T21:00")
    assert late("Europe/Berlin", due, due + 60, 0) == ""
    assert late("Europe/Berlin", due, due + 61, 0) != ""
    assert (
        late("Europe/Berlin", due, due + 7200, 0)
        == " It was due at 2026-03-28 21:00 (Europe/Berlin), when no gateway ran."
    )
    assert late("Europe/Berlin", due, due + 5, 1) == " Before that it was missed once."
    assert late("Europe/Berlin", due, due + 5, 7) == " Before that it was missed 7 times."


ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kolkata"]


@given(
    zone=st.sampled_from(ZONES),
    hour=st.integers(0, 23),
    minute=st.integers(0, 59),
    moment=st.floats(1_420_000_000, 1_900_000_000).map(int),
)
def test_every_day_means_once_on_every_date_whatever_the_clocks_do(
    zone: str, hour: int, minute: int, moment: float
) -> None:
    here = ZoneInfo(zone)
    dates = []
    for _ in range(8):
        found = following(f"{minute} {hour} * * *", zone, moment)
        assert found is not None
        assert found > moment
        shown = datetime.fromtimestamp(found, here)
        assert (shown.hour, shown.minute) >= (hour, minute)
        dates.append(shown.date())
        moment = found
    assert dates == [dates[0] + timedelta(days=n) for n in range(8)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("0 9 * * *", "every day at 09:00"),
        ("0 9 * * 1-5", "every weekday at 09:00"),
        ("0 9 * * mon-fri", "every weekday at 09:00"),
        ("30 8 * * 6,7", "every weekend at 08:30"),
        ("0 9 * * 0-6", "every day at 09:00"),
        ("5 7 * * 5,1,sun", "every monday, friday and sunday at 07:05"),
        ("0 9,17 * * 1", "every monday at 09:00 and 17:00"),
        ("* * * * *", "every minute"),
        ("*/15 * * * *", "every 15 minutes"),
        ("0 * * * *", "every hour"),
        ("30 */2 * * *", "every 2 hours at minute 30"),
        ("0 9 1 * *", "every month on the 1st at 09:00"),
        ("0 9 2,22,31 * *", "every month on the 2nd, 22nd and 31st at 09:00"),
        ("0 18 24 12 *", "every year on 24 december at 18:00"),
        ("0 18 1 jan *", "every year on 1 january at 18:00"),
        ("*/7 * * * *", "*/7 * * * *"),
        ("0 9 13 * 5", "0 9 13 * 5"),
        ("0 9 L * *", "0 9 L * *"),
        ("0 8-20 * * *", "0 8-20 * * *"),
    ],
)
def test_a_line_is_worded(line: str, words: str) -> None:
    assert worded(line) == words


def test_a_plan_is_shown_in_words_with_its_zone() -> None:
    found = plan("0 9 * * 1-5", "Europe/Berlin", NOW)
    assert shown(found.line, found.zone, found.due) == "every weekday at 09:00 (Europe/Berlin), next 2026-03-30 09:00"


def fields(most: int, least: int = 0) -> st.SearchStrategy[str]:
    """A field of a cron line as people write it."""
    number = st.integers(least, most)
    lists = st.lists(number, min_size=1, max_size=4).map(lambda found: ",".join(map(str, found)))
    ranges = st.tuples(number, number).map(lambda ends: f"{min(ends)}-{max(ends)}")
    steps = st.integers(1, most).map(lambda step: f"*/{step}")
    return st.just("*") | number.map(str) | lists | ranges | steps


LINES = st.tuples(fields(59), fields(23), fields(28, 1), fields(12, 1), fields(7)).map(" ".join)
DAILY = st.tuples(st.integers(0, 59).map(str), fields(23), st.just("* *"), fields(7)).map(" ".join)


@given(line=LINES | DAILY, zone=st.sampled_from(ZONES), moment=st.integers(1_420_000_000, 1_900_000_000))
def test_words_are_read_back_as_the_same_times(line: str, zone: str, moment: int) -> None:
    first = plan(line, zone, moment)
    words, _, _ = shown(first.line, first.zone, first.due).partition(", next")
    again = plan(words, "Pacific/Kiritimati", moment)
    assert (again.due, again.zone) == (first.due, first.zone)
    at: float | None = first.due
    for _ in range(20):
        assert at is not None
        assert following(first.line, zone, at) == following(again.line, zone, at)
        at = following(first.line, zone, at)
    # Words that people wrote give a line that is worded and read as itself.
    assert plan(words, zone, moment).line == plan(worded(again.line), zone, moment).line


@given(zone=st.sampled_from(ZONES), moment=st.integers(1_420_000_000, 1_900_000_000), ahead=st.integers(1, 9000))
def test_a_moment_is_shown_so_that_it_is_read_back(zone: str, moment: int, ahead: int) -> None:
    first = plan(f"in {ahead}m", zone, moment)
    again = plan(shown(first.line, first.zone, first.due), "Pacific/Kiritimati", moment - 86400)
    repeated = datetime.fromtimestamp(first.due, ZoneInfo(zone)).fold
    assert repeated or again == schedules.Plan(first.due - first.due % 60, ONCE, zone)
