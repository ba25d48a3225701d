"""Destinations as people type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.destinations import Wanted, matching, parse, shown
from segue.errors import Invalid

ACCOUNTS = [("telegram", "main"), ("telegram", "work"), ("http", "telegram"), ("terminal", "local"), ("web", "local")]


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("telegram", Wanted("telegram")),
        (" telegram.work ", Wanted("telegram.work")),
        ("work:-100", Wanted("work", "-100")),
        ("matrix:!r:example.org:8448", Wanted("matrix", "!r:example.org:8448")),
        ("Page", Wanted("web")),
    ],
)
def test_it_is_split_at_the_first_colon(typed: str, wanted: Wanted) -> None:
    assert parse(typed) == wanted


@pytest.mark.parametrize("typed", ["", " ", ":chat", "telegram:", "telegram: "])
def test_what_names_nothing_is_refused(typed: str) -> None:
    with pytest.raises(Invalid, match="destination"):
        parse(typed)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("telegram", [("telegram", "main"), ("telegram", "work"), ("http", "telegram")]),
        ("telegram.main", [("telegram", "main")]),
        ("work", [("telegram", "work")]),
        ("Work", [("telegram", "work")]),
        ("local", [("terminal", "local"), ("web", "local")]),
        ("slack", []),
    ],
)
def test_a_platform_an_account_or_both(name: str, found: list[tuple[str, str]]) -> None:
    assert matching(Wanted(name), ACCOUNTS) == found


def test_as_it_was_typed_goes_before_other_capitals() -> None:
    accounts = [("http", "Work"), ("http", "work")]
    assert matching(Wanted("work"), accounts) == [("http", "work")]
    assert matching(Wanted("WORK"), accounts) == accounts


@given(st.text(min_size=1), st.text(min_size=1))
def test_what_is_shown_finds_its_account(platform: str, account: str) -> None:
    name = shown(platform, account)
    assert (platform, account) in matching(Wanted(name), [(platform, account), ("other", "one")])
