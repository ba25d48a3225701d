"""Graphemes: what a reader takes for one character stays one."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.text.splitting import graphemes

ANY = st.text(st.characters() | st.sampled_from("\u0301\u200d\ufe0f👩🏽🇩🇪कᄀ\u1161각\r\n"))


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in graphemes(text, 0, len(text))]


@pytest.mark.parametrize(
    "one",
    [
        pytest.param("a", id="a letter"),
        pytest.param("e\u0301", id="an accent"),
        pytest.param("a\u0300\u0323\u0330", id="several accents"),
        pytest.param("❤\ufe0f", id="a variation"),
        pytest.param("1\ufe0f\u20e3", id="a keycap"),
        pytest.param("👍🏽", id="a skin tone"),
        pytest.param("👩\u200d👩\u200d👧\u200d👦", id="a family"),
        pytest.param("🏳\ufe0f\u200d🌈", id="a rainbow flag"),
        pytest.param("🇩🇪", id="a flag"),
        pytest.param("🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", id="a flag by tags"),
        pytest.param("각", id="a Korean syllable"),
        pytest.param("\u1100\u1161\u11a8", id="a Korean syllable in parts"),
        pytest.param("가\u11a8", id="a Korean syllable with a part"),
        pytest.param("नि", id="a vowel sign"),
        pytest.param("क्षि", id="a conjunct"),
        pytest.param("ก\u0e33", id="a Thai vowel"),
        pytest.param("\u0600\u0661", id="an Arabic number sign"),
        pytest.param("\r\n", id="a line break of two"),
        pytest.param("漢", id="an ideograph"),
    ],
)
def test_one_character(one: str) -> None:
    assert cut(one) == [one]
    assert cut(f"x{one}") == ["x", one]
    assert cut(f"{one} ") == [one, " "]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("ab", ["a", "b"], id="letters"),
        pytest.param("🇩🇪🇫🇷🇮", ["🇩🇪", "🇫🇷", "🇮"], id="flags, and half of one"),
        pytest.param("x🇩🇪y🇫🇷", ["x", "🇩🇪", "y", "🇫🇷"], id="flags among letters"),
        pytest.param("👍👍🏽", ["👍", "👍🏽"], id="emoji"),
        pytest.param("각가", ["각", "가"], id="Korean syllables"),
        pytest.param("각\u1161", ["각", "\u1161"], id="a vowel after a closed syllable"),
        pytest.param("\n\u0301", ["\n", "\u0301"], id="an accent alone on its line"),
        pytest.param("\u200d x", ["\u200d", " ", "x"], id="a joiner before a space"),
    ],
)
def test_several_characters(text: str, parts: list[str]) -> None:
    assert cut(text) == parts


def test_only_the_stretch_is_cut() -> None:
    assert list(graphemes("e\u0301e\u0301", 2, 4)) == [(2, 4)]
    assert list(graphemes("abc", 1, 2)) == [(1, 2)]
    assert list(graphemes("abc", 1, 1)) == []


@given(ANY)
def test_nothing_is_lost_or_empty(text: str) -> None:
    assert "".join(cut(text)) == text
    assert all(cut(text))


@given(ANY)
def test_no_character_begins_with_an_accent_unless_nothing_can_carry_it(text: str) -> None:
    found = cut(text)
    for before, here in pairwise(found):
        if here[0] in "\u0301\u200d\ufe0f🏽":
            assert before[-1].isspace() or not before[-1].isprintable()
