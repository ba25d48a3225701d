"""Codes: easy to type, hard to guess, and kept as nothing that gives them away."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.people import ALPHABET, LENGTH, RANDOMNESS, digest, make_code, read_code

SECRET = b"s" * 32
BYTES = st.binary(min_size=RANDOMNESS, max_size=RANDOMNESS)


@given(BYTES)
def test_a_code_is_eight_characters_in_two_groups(randomness: bytes) -> None:
    code = make_code(randomness)
    assert [len(group) for group in code.split("-")] == [4, 4]
    assert set(code) <= {*ALPHABET, "-"}


def test_no_two_characters_look_alike() -> None:
    alike = ["0O", "1IL", "2Z", "5S", "8B", "UV"]
    assert all(len(set(ALPHABET) & set(group)) <= 1 for group in alike)
    assert len(set(ALPHABET)) == len(ALPHABET)
    assert not set(ALPHABET) & set("AEIOU")


def test_every_character_comes_up_everywhere_about_as_often() -> None:
    codes = [read_code(make_code(number.to_bytes(RANDOMNESS))) for number in range(len(ALPHABET) ** 2)]
    for place in range(2):
        counts = {letter: sum(code[place] == letter for code in codes) for letter in ALPHABET}
        assert set(counts.values()) == {len(ALPHABET)}


@pytest.mark.parametrize("size", [0, RANDOMNESS - 1, RANDOMNESS + 1])
def test_too_little_randomness_is_an_error(size: int) -> None:
    with pytest.raises(ValueError, match=str(RANDOMNESS)):
        make_code(b"x" * size)


@given(BYTES)
def test_a_code_counts_however_it_is_typed(randomness: bytes) -> None:
    code = make_code(randomness)
    plain = read_code(code)
    assert len(plain) == LENGTH
    wide = "".join(chr(ord(c) + 0xFEE0) for c in plain)
    for typed in (plain, code.lower(), f"  {code} ", code.replace("-", " "), code.replace("-", "—"), wide):
        assert digest(SECRET, typed) == digest(SECRET, code)


@given(BYTES, BYTES)
def test_two_codes_have_two_digests(one: bytes, two: bytes) -> None:
    same = make_code(one) == make_code(two)
    assert (digest(SECRET, make_code(one)) == digest(SECRET, make_code(two))) is same


def test_a_digest_needs_the_secret() -> None:
    code = make_code(bytes(range(RANDOMNESS)))
    assert digest(SECRET, code) != digest(b"t" * 32, code)
    assert read_code(code).lower() not in digest(SECRET, code)


@given(st.text(st.characters(exclude_categories=())))
def test_whatever_was_typed_has_a_digest(typed: str) -> None:
    assert len(digest(SECRET, typed)) == 64
