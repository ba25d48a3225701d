"""Titles: exact, clean, and numbered by Segue alone."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from segue.core.titles import LONGEST, Title, clean, label, new_title, parse
from segue.errors import Invalid

anything = st.text(st.characters(exclude_categories=()), max_size=130)
title_like = st.lists(
    st.sampled_from([" ", "#", "1", "2", "0", "9", " #2", "a", "é", "\u200d", "\u200c", "\ufe0f", "ی", "\u0301", "\n"])
)
texts = anything | title_like.map("".join)


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        pytest.param("Tax return", "Tax return", id="plain"),
        pytest.param("  Tax \t\n return ", "Tax return", id="one line, single spaces"),
        pytest.param("Cafe\u0301", "Café", id="composed"),
        pytest.param("Cafe\u200b\u0301", "Café", id="composed across what was hidden"),
        pytest.param("Tax\0\x1b\u202e\ufeff return\ud800", "Tax return", id="nothing invisible"),
        pytest.param("TAX", "TAX", id="case stays"),
        pytest.param("ﬁ Ａ", "ﬁ Ａ", id="compatibility forms stay"),  # noqa: RUF001
        pytest.param("100%_* 'x'", "100%_* 'x'", id="wildcards are letters"),
        pytest.param("税金 😀", "税金 😀", id="other scripts"),
        pytest.param("#2", "#2", id="a number sign without a name"),
        pytest.param("Tax#2", "Tax#2", id="a number sign without a space"),
        pytest.param("Tax #2 again", "Tax #2 again", id="a number in the middle"),
        pytest.param("Tax #", "Tax #", id="a number sign alone"),
        pytest.param("Tax #0", "Tax #0", id="no lineage has a nought"),
        pytest.param("Tax #02", "Tax #02", id="nor a leading nought"),
        pytest.param("3 wishes", "3 wishes", id="digits and a word"),
        pytest.param("x" * LONGEST, "x" * LONGEST, id="as long as it may be"),
    ],
)
def test_a_title_as_it_is_kept(typed: str, kept: str) -> None:
    assert new_title(typed) == kept


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        pytest.param("", "empty", id="empty"),
        pytest.param(" \n\t", "empty", id="only spaces"),
        pytest.param("\u200b\u202e\0", "empty", id="only the invisible"),
        pytest.param("x" * (LONGEST + 1), "101 characters", id="too long"),
        pytest.param("7", "only digits", id="a digit"),
        pytest.param(" 42 ", "only digits", id="digits"),
        pytest.param("４２", "only digits", id="digits of another width"),  # noqa: RUF001
        pytest.param("٣", "only digits", id="digits of another script"),
        pytest.param("Tax #2", "number sign", id="a number of a lineage"),
        pytest.param("Tax #1", "number sign", id="the first number"),
        pytest.param("Tax \u200b#2\u200b", "number sign", id="a hidden one"),
        pytest.param("Tax #2 #3", "number sign", id="two numbers"),
        pytest.param("Tax #123456789", "number sign", id="a large number"),
    ],
)
def test_a_title_that_nobody_may_give(typed: str, problem: str) -> None:
    with pytest.raises(Invalid, match=problem) as refused:
        new_title(typed)
    assert refused.value.field == "title"


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("Tax", ("Tax", None)),
        (" Tax  return ", ("Tax return", None)),
        ("Tax #2", ("Tax", 2)),
        ("Tax #1", ("Tax", 1)),
        ("Tax #2 #3", ("Tax #2", 3)),
        ("Tax #02", ("Tax #02", None)),
        ("#2", ("#2", None)),
        ("Tax # 2", ("Tax # 2", None)),
        ("", ("", None)),
    ],
)
def test_what_somebody_typed_to_find_a_session(typed: str, found: tuple[str, int | None]) -> None:
    assert parse(typed) == found


@pytest.mark.parametrize(
    ("title", "shown"), [(Title("Tax"), "Tax"), (Title("Tax", 2), "Tax #2"), (Title("Tax", 10), "Tax #10")]
)
def test_a_title_as_it_is_shown(title: Title, shown: str) -> None:
    assert str(title) == shown


def test_a_lineage_sorts_by_its_numbers() -> None:
    assert sorted([Title("Tax", 10), Title("Tax", 2), Title("Tax")]) == [
        Title("Tax"),
        Title("Tax", 2),
        Title("Tax", 10),
    ]


@pytest.mark.parametrize(
    "unseen", ["\u3164", "\u115f\u1160", "\uffa0", "\u2800", "\ufe0f", "\U000e0041\U000e01ef", "\u200d"]
)
def test_what_nobody_sees_is_no_title_and_no_label(unseen: str) -> None:
    with pytest.raises(Invalid):
        new_title(unseen)
    assert clean(f"Ta{unseen}x") == "Tax"
    assert label(f" {unseen}\n{unseen}") == ""


@pytest.mark.parametrize("text", ["می\u200cکنم", "👩\u200d👩\u200d👧", "❤\ufe0f"])
def test_joiners_come_through_in_a_label_and_a_title(text: str) -> None:
    assert label(text) == text
    assert new_title(text) == text
    assert clean(f"\u200d{text}\u200d \u200c") == text


@given(texts)
@example("e\u200d\u0301")
@example("\u2000\u0301")
@example("\u1f71\u200d\u1f71")
@example("\u212b\u200dی")
@example("می\u200c\u0301کنم")
def test_a_clean_title_is_clean_already(text: str) -> None:
    kept = clean(text)
    assert clean(kept) == kept
    assert unicodedata.is_normalized("NFC", kept)
    seen = kept.replace("\u200c", "").replace("\u200d", "")
    assert not {unicodedata.category(c) for c in seen} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert kept == " ".join(kept.split())


@given(texts, st.integers(1, 999_999_999))
def test_whoever_types_a_title_as_it_is_shown_finds_that_one(text: str, number: int) -> None:
    try:
        title = Title(new_title(text), number)
    except Invalid:
        return
    assert parse(str(title)) == (title.name, None if number == 1 else number)


@given(texts)
def test_a_title_that_was_given_can_be_given_again(text: str) -> None:
    try:
        name = new_title(text)
    except Invalid:
        return
    assert new_title(name) == name
