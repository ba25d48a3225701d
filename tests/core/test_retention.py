"""Retention: the narrowest rule holds."""

import pytest

from segue.core.lanes import Address, Kind, Lane
from segue.core.settings import Retention


@pytest.mark.parametrize(
    ("retention", "account", "kind", "thread", "days"),
    [
        (Retention(), None, Kind.DM, "", 0),
        (Retention(days=9), None, Kind.DM, "", 9),
        (Retention(days=9, dm=3), None, Kind.DM, "", 3),
        (Retention(days=9, dm=0), None, Kind.DM, "", 0),
        (Retention(days=9, group=3), None, Kind.CHANNEL, "", 3),
        (Retention(days=9, dm=3, thread=5), None, Kind.DM, "t", 5),
        (Retention(days=9, dm=3), 7, Kind.DM, "", 7),
        (Retention(days=9), 0, Kind.GROUP, "", 0),
    ],
)
def test_the_narrowest_rule_holds(
    retention: Retention, account: int | None, kind: Kind, thread: str, days: int
) -> None:
    assert retention.of(Lane(Address("telegram", "bot", "", "c", thread)), kind, account) == days
