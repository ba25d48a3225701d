"""Meters: the month that a message counts in, and when the host is warned."""

from datetime import UTC, datetime

import pytest

from segue.core.limits.meters import Metered, month_of


@pytest.mark.parametrize(("zone", "name"), [("UTC", "2026-10"), ("Asia/Tokyo", "2026-11")])
def test_a_month_begins_at_midnight_in_its_zone(zone: str, name: str) -> None:
    late = datetime(2026, 10, 31, 20, 0, tzinfo=UTC).timestamp()
    month = month_of(late, zone)
    assert month.name == name
    assert month.since <= late
    assert month_of(month.since, zone) == month
    assert month_of(month.since - 1, zone).name < name


def test_the_warning_comes_before_the_end() -> None:
    assert not Metered("whatsapp.main", 899, 1000).low
    assert Metered("whatsapp.main", 900, 1000).low
    assert Metered("whatsapp.main", 1234, 1000).warning.startswith("whatsapp.main: 1,234 of 1,000 free messages")
