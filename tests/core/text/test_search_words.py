"""The words that search knows: what was said is found by what one would type."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.text.search_words import MOST, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("The tax return", ["the", "tax", "return"], id="words, in order"),
        pytest.param("Tax, tax; TAX!", ["tax"], id="each once"),
        pytest.param("STRASSE Straße", ["strasse"], id="case folded"),
        pytest.param("Cafe\u0301 café", ["café"], id="composed"),
        pytest.param("\ufb01ne \uff21", ["fine", "a"], id="compatibility forms"),
        pytest.param("snake_case a-b c.d", ["snake", "case", "a", "b", "c", "d"], id="what joins words parts them"),
        pytest.param("2024-05-05", ["2024", "05"], id="numbers"),
        pytest.param("% * ? \" ' : ( ) -", [], id="no operators"),
        pytest.param("東京都", ["東京", "京都", "都"], id="no spaces: pairs, and each character begins a word"),
        pytest.param("東", ["東"], id="one character"),
        pytest.param("GPT東京v2", ["gpt", "東京", "京", "v2"], id="mixed"),
        pytest.param("한국어 검색", ["한국어", "검색"], id="spaces: words"),
        pytest.param("x" * 65, ["x" * 64], id="a very long word, cut"),
        pytest.param("\ud800 \0 x", ["x"], id="what is no character"),
    ],
)
def test_the_words_of_a_text(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@given(st.text(st.characters(exclude_categories=())))
def test_words_are_words_already_and_fit_into_either_database(text: str) -> None:
    words = words_of(text)
    assert len(words) == len(set(words))
    for word in words:
        assert word in words_of(word)
        assert word.isalnum()
        assert word.encode().decode() == word


@pytest.mark.parametrize("text", [" ".join(map(str, range(100_000))), "".join(map(chr, range(0x4E00, 0x9FFF))) * 50])
def test_a_long_text_has_only_its_share_of_words(text: str) -> None:
    assert 0 < sum(len(word.encode()) + 1 for word in words_of(text)) <= MOST
