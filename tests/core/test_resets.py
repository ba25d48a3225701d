"""Resets: due once per boundary, on the nights when clocks change too."""

from bisect import bisect_left
from datetime import UTC, datetime, time, timedelta
from itertools import accumulate
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.lanes import Address, Kind, Lane
from segue.core.resets import Due, Policies, Policy, When, boundary, due, ends, notice
from segue.errors import Invalid

HOUR = 3600
ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "America/Havana",
    "America/Sao_Paulo",
    "America/Nuuk",
    "Asia/Kolkata",
    "Asia/Beirut",
    "Asia/Pyongyang",
    "Australia/Lord_Howe",
    "Antarctica/Casey",
    "Antarctica/Troll",
    "Pacific/Apia",
    "Pacific/Kwajalein",
    "Pacific/Chatham",
]


def at(text: str) -> float:
    """A moment, written in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


# The daily boundary


@pytest.mark.parametrize(
    ("zone", "hour", "now", "last"),
    [
        pytest.param("UTC", 4, "2024-05-05T04:00", "2024-05-05T04:00", id="at the hour"),
        pytest.param("UTC", 4, "2024-05-05T03:59:59", "2024-05-04T04:00", id="a second before it"),
        pytest.param("Asia/Kolkata", 4, "2024-05-05T00:00", "2024-05-04T22:30", id="in a named time zone"),
        pytest.param("Europe/Berlin", 1, "2024-03-31T12:00", "2024-03-31T00:00", id="Berlin: before the gap"),
        pytest.param("Europe/Berlin", 2, "2024-03-31T00:59:59", "2024-03-30T01:00", id="Berlin: until the gap"),
        pytest.param("Europe/Berlin", 2, "2024-03-31T12:00", "2024-03-31T01:00", id="Berlin: in the gap"),
        pytest.param("Europe/Berlin", 3, "2024-03-31T12:00", "2024-03-31T01:00", id="Berlin: at the gap's end"),
        pytest.param("Europe/Berlin", 4, "2024-03-31T12:00", "2024-03-31T02:00", id="Berlin: after the gap"),
        pytest.param("Europe/Berlin", 2, "2024-10-27T00:30", "2024-10-27T00:00", id="Berlin: repeated, first pass"),
        pytest.param("Europe/Berlin", 2, "2024-10-27T01:30", "2024-10-27T00:00", id="Berlin: repeated, second pass"),
        pytest.param("Europe/Berlin", 3, "2024-10-27T12:00", "2024-10-27T02:00", id="Berlin: after the repeat"),
        pytest.param("America/New_York", 2, "2024-03-10T12:00", "2024-03-10T07:00", id="New York: in the gap"),
        pytest.param("America/New_York", 1, "2024-11-03T06:30", "2024-11-03T05:00", id="New York: repeated"),
        pytest.param(
            "Australia/Lord_Howe", 2, "2024-10-05T20:00", "2024-10-05T15:30", id="Lord Howe: half an hour gap"
        ),
        pytest.param("Australia/Lord_Howe", 1, "2024-04-06T15:10", "2024-04-06T14:00", id="Lord Howe: repeated"),
        pytest.param("Australia/Lord_Howe", 2, "2024-04-06T15:29", "2024-04-05T15:00", id="Lord Howe: not yet"),
        pytest.param("Australia/Lord_Howe", 2, "2024-04-06T15:30", "2024-04-06T15:30", id="Lord Howe: after it"),
        pytest.param("Antarctica/Troll", 2, "2024-03-31T01:00", "2024-03-31T01:00", id="Troll: a gap of two hours"),
        pytest.param("Antarctica/Casey", 4, "2009-10-17T18:00", "2009-10-17T18:00", id="Casey: a gap of three hours"),
        pytest.param("America/St_Johns", 1, "2010-03-14T03:31", "2010-03-14T03:31", id="St. John's: gap at 00:01"),
        pytest.param(
            "America/St_Johns", 0, "2010-11-07T03:00", "2010-11-07T02:30", id="St. John's: back over midnight"
        ),
        pytest.param("America/Nuuk", 23, "2024-03-31T05:00", "2024-03-31T01:00", id="Nuuk: a gap up to midnight"),
        pytest.param("Pacific/Apia", 4, "2011-12-30T13:59", "2011-12-29T14:00", id="Apia: no 30 December 2011"),
        pytest.param("Pacific/Apia", 4, "2011-12-30T14:00", "2011-12-30T14:00", id="Apia: the 31st comes next"),
        pytest.param("Pacific/Apia", 23, "2011-12-30T10:30", "2011-12-30T09:00", id="Apia: the hour before the jump"),
        pytest.param("Pacific/Apia", 0, "2011-12-30T10:00", "2011-12-30T10:00", id="Apia: at the jump"),
    ],
)
def test_the_last_daily_boundary(zone: str, hour: int, now: str, last: str) -> None:
    found = boundary(Policy(When.DAILY, hour=hour, zone=zone), at(now))
    assert datetime.fromtimestamp(found, UTC) == datetime.fromtimestamp(at(last), UTC)


@pytest.mark.parametrize(
    ("zone", "night"),
    [
        ("Europe/Berlin", "2024-03-31T01:00"),
        ("Europe/Berlin", "2024-10-27T01:00"),
        ("America/New_York", "2024-03-10T07:00"),
        ("America/St_Johns", "2010-03-14T03:31"),
        ("America/St_Johns", "2010-11-07T02:31"),
        ("America/Havana", "2024-03-10T05:00"),
        ("America/Sao_Paulo", "2018-02-18T02:00"),
        ("America/Nuuk", "2024-03-31T01:00"),
        ("America/Nuuk", "2024-10-27T01:00"),
        ("Asia/Pyongyang", "2018-05-04T15:00"),
        ("Australia/Lord_Howe", "2024-10-05T15:30"),
        ("Australia/Lord_Howe", "2024-04-06T15:00"),
        ("Antarctica/Casey", "2009-10-17T18:00"),
        ("Antarctica/Troll", "2024-03-31T01:00"),
        ("Pacific/Apia", "2011-12-30T10:00"),
        ("Pacific/Kwajalein", "1993-08-21T12:00"),
    ],
)
def test_each_local_date_has_one_boundary_when_its_clocks_first_show_the_hour(zone: str, night: str) -> None:
    """Compared with watching the clock there, minute by minute."""
    begin = at(night) - 3 * 24 * HOUR
    minutes = [begin + 60 * n for n in range(6 * 24 * 60)]
    clock = [datetime.fromtimestamp(moment, ZoneInfo(zone)).replace(tzinfo=None) for moment in minutes]
    latest = list(accumulate(clock, max))
    dates = sorted(set(map(datetime.date, clock)))[1:-1]
    for hour in range(24):
        struck = [minutes[bisect_left(latest, datetime.combine(date, time(hour)))] for date in dates]
        for now in minutes[2 * 24 * 60 : 5 * 24 * 60 : 20]:
            last = max(moment for moment in struck if moment <= now)
            assert boundary(Policy(When.DAILY, hour=hour, zone=zone), now) == last


moments = st.floats(0, at("2037-01-01"))
daily = st.builds(Policy, st.just(When.DAILY), hour=st.integers(0, 23), zone=st.sampled_from(ZONES))


@given(daily, moments, st.floats(0, 100 * HOUR))
def test_boundaries_follow_each_other_and_never_lie_ahead(policy: Policy, now: float, later: float) -> None:
    last = boundary(policy, now)
    assert now - 50 * HOUR < last <= now
    assert boundary(policy, last) == last
    assert boundary(policy, now + later) >= last


# What is due


DAY = 24 * HOUR
NOON = at("2024-05-05T12:00")


@pytest.mark.parametrize(
    ("policy", "used", "now", "why"),
    [
        pytest.param(Policy(), 0, NOON, None, id="nothing by default"),
        pytest.param(Policy(When.IDLE), NOON, NOON + DAY - 1, None, id="idle: not yet"),
        pytest.param(Policy(When.IDLE), NOON, NOON + DAY, Due.IDLE, id="idle: a day"),
        pytest.param(Policy(When.IDLE, idle_minutes=5), NOON, NOON + 300, Due.IDLE, id="idle: minutes"),
        pytest.param(Policy(When.IDLE), NOON, NOON - 9 * DAY, None, id="idle: the clock went back"),
        pytest.param(Policy(When.DAILY), NOON, NOON + 16 * HOUR - 1, None, id="daily: not yet"),
        pytest.param(Policy(When.DAILY), NOON, NOON + 16 * HOUR, Due.DAILY, id="daily: at four"),
        pytest.param(Policy(When.DAILY), NOON - 8 * HOUR, NOON, None, id="daily: used at four itself"),
        pytest.param(Policy(When.DAILY), NOON - 8 * HOUR - 1, NOON, Due.DAILY, id="daily: used just before"),
        pytest.param(Policy(When.DAILY), NOON, NOON + 99 * DAY, Due.DAILY, id="daily: a long time"),
        pytest.param(Policy(When.DAILY), NOON, NOON - 9 * DAY, None, id="daily: the clock went back"),
        pytest.param(Policy(When.BOTH), NOON, NOON + HOUR, None, id="both: not yet"),
        pytest.param(Policy(When.BOTH), NOON, NOON + 16 * HOUR, Due.DAILY, id="both: daily first"),
        pytest.param(Policy(When.BOTH, idle_minutes=60), NOON, NOON + HOUR, Due.IDLE, id="both: idle first"),
    ],
)
def test_why_a_session_is_over(policy: Policy, used: float, now: float, why: Due | None) -> None:
    assert due(policy, used, now) is why


policies = st.builds(
    Policy,
    st.sampled_from(When),
    st.floats(0, exclude_min=True, allow_infinity=False, allow_nan=False),
    st.integers(0, 23),
    st.sampled_from(ZONES),
)


@given(policies, moments, moments, st.floats(0, 100 * DAY))
def test_what_is_due_stays_due_until_it_happens(policy: Policy, used: float, now: float, later: float) -> None:
    if due(policy, used, now) is not None:
        assert due(policy, used, now + later) is not None


@given(policies, moments, st.floats(0, 100 * DAY))
def test_what_was_used_just_now_is_never_due_nor_if_the_clock_goes_back(
    policy: Policy, now: float, back: float
) -> None:
    assert due(policy, now, now) is None
    assert due(policy, now, max(0, now - back)) is None


@given(daily, moments, st.lists(st.floats(0, 3 * DAY), max_size=20))
def test_each_boundary_is_due_once(policy: Policy, now: float, steps: list[float]) -> None:
    used = now
    seen: list[float] = []
    for step in steps:
        now += step
        if due(policy, used, now) is not None:
            seen.append(boundary(policy, now))
        used = now
    assert seen == sorted(set(seen))


# Policies


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("idle_minutes", {"idle_minutes": 0}),
        ("idle_minutes", {"idle_minutes": -1}),
        ("idle_minutes", {"idle_minutes": float("nan")}),
        ("hour", {"hour": -1}),
        ("hour", {"hour": 24}),
        ("zone", {"zone": ""}),
        ("zone", {"zone": "Mars/Olympus"}),
        ("zone", {"zone": "europe/berlin "}),
        ("zone", {"zone": "../../etc/passwd"}),
        ("zone", {"zone": "Europe"}),
        ("zone", {"zone": "Europe/Berlin\0"}),
        ("zone", {"zone": "\ud800"}),
        ("zone", {"zone": "x" * 5000}),
    ],
)
def test_a_policy_that_cannot_be_is_refused_by_name(field: str, wrong: dict[str, object]) -> None:
    with pytest.raises(Invalid) as refused:
        Policy(**wrong)  # type: ignore[arg-type]
    assert refused.value.field == field


@pytest.mark.parametrize("zone", ZONES)
def test_a_policy_knows_its_zone(zone: str) -> None:
    now = datetime(2024, 5, 5, 12, tzinfo=ZoneInfo(zone))
    four = now - timedelta(hours=8)
    assert boundary(Policy(When.DAILY, zone=zone), now.timestamp()) == four.timestamp()


IDLE, DAILY, BOTH = Policy(When.IDLE), Policy(When.DAILY), Policy(When.BOTH)
CHAT = Lane(Address("slack", "app", "T", "C"))
THREAD = Lane(Address("slack", "app", "T", "C", "1.2"))
ELSEWHERE = Lane(Address("signal", "+1", chat="g"))


@pytest.mark.parametrize(
    ("policies", "lane", "kind", "policy"),
    [
        pytest.param(Policies(), CHAT, Kind.DM, Policy(When.NONE), id="nothing set: never"),
        pytest.param(Policies(IDLE), CHAT, Kind.DM, IDLE, id="the default"),
        pytest.param(Policies(IDLE, {"dm": DAILY}), CHAT, Kind.DM, DAILY, id="the kind beats the default"),
        pytest.param(Policies(IDLE, {"dm": DAILY}), CHAT, Kind.GROUP, IDLE, id="another kind doesn't"),
        pytest.param(Policies(IDLE, {"group": DAILY}), CHAT, Kind.GROUP, DAILY, id="group"),
        pytest.param(Policies(IDLE, {"channel": DAILY}), CHAT, Kind.CHANNEL, DAILY, id="channel"),
        pytest.param(Policies(IDLE, {"thread": DAILY}), THREAD, Kind.DM, DAILY, id="a thread in a DM is a thread"),
        pytest.param(Policies(IDLE, {"group": DAILY}), THREAD, Kind.GROUP, IDLE, id="a thread is no group"),
        pytest.param(
            Policies(IDLE, {"dm": DAILY}, {"slack": BOTH}), CHAT, Kind.DM, BOTH, id="the platform beats the kind"
        ),
        pytest.param(
            Policies(IDLE, {"dm": DAILY}, {"slack": BOTH}), ELSEWHERE, Kind.DM, DAILY, id="another platform doesn't"
        ),
        pytest.param(Policies(IDLE, {}, {"slack": Policy()}), CHAT, Kind.DM, Policy(), id="a platform may say never"),
    ],
)
def test_platform_beats_kind_beats_default(policies: Policies, lane: Lane, kind: Kind, policy: Policy) -> None:
    assert policies.of(lane, kind) == policy


# When it will be over


@given(
    when=st.sampled_from([When.IDLE, When.DAILY, When.BOTH]),
    minutes=st.integers(1, 5000),
    hour=st.integers(0, 23),
    zone=st.sampled_from(ZONES),
    used=st.integers(0, 2_000_000_000),
)
def test_a_session_is_over_from_the_moment_that_was_foretold_and_not_before(
    when: When, minutes: int, hour: int, zone: str, used: int
) -> None:
    policy = Policy(when, minutes, hour, zone)
    moment = ends(policy, used)
    assert moment is not None
    assert moment > used
    assert due(policy, used, moment - 1) is None
    assert due(policy, used, moment) is not None


def test_what_never_ends_is_foretold_too() -> None:
    assert ends(Policy(), 0.0) is None
    assert not Policies().resets
    assert not Policies(Policy(), {"dm": Policy()}).resets
    assert Policies(Policy(), {}, {"slack": IDLE}).resets


@pytest.mark.parametrize(
    ("minutes", "over", "why"),
    [
        (1440, Due.IDLE, "nobody had written here for a day"),
        (2880, Due.IDLE, "nobody had written here for 2 days"),
        (60, Due.IDLE, "nobody had written here for an hour"),
        (90, Due.IDLE, "nobody had written here for 90 minutes"),
        (0.5, Due.IDLE, "nobody had written here for 0.5 minutes"),
        (1440, Due.DAILY, "a new day began"),
    ],
)
def test_people_are_told_why_and_how_to_go_back(minutes: float, over: Due, why: str) -> None:
    told = notice(Policy(When.BOTH, minutes), over)
    assert told == f"This is a new session: {why}. The old one is kept: /undo goes back to it."
