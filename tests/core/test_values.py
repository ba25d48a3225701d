"""Ids: 26 characters, in the order of time, never twice the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segue.core.transcripts import Tip
from segue.core.values import SessionId, make_id

moments = st.floats(0, (2**48 - 1) / 1000)
ten_bytes = st.binary(min_size=10, max_size=10)


@given(moments, ten_bytes)
def test_an_id_is_26_lower_case_characters_without_look_alikes(at: float, randomness: bytes) -> None:
    id = make_id(at, randomness)
    assert len(id) == 26
    assert set(id) <= set("0123456789abcdefghjkmnpqrstvwxyz")


@given(moments, moments, ten_bytes, ten_bytes)
def test_ids_sort_by_time_whatever_the_randomness(at: float, later: float, randomness: bytes, other: bytes) -> None:
    at, later = sorted((at, later))
    assert make_id(at, randomness) <= make_id(later, randomness)
    if later - at >= 0.002:
        assert make_id(at, randomness) < make_id(later, other)


@given(moments, st.lists(ten_bytes, unique=True))
def test_ids_of_one_moment_differ_and_sort_by_their_randomness(at: float, randomness: list[bytes]) -> None:
    ids = [make_id(at, drawn) for drawn in sorted(randomness)]
    assert sorted(set(ids)) == ids


def test_the_first_and_the_last_id() -> None:
    assert make_id(0, bytes(10)) == "0" * 26
    assert make_id((2**48 - 1) / 1000, b"\xff" * 10) == "7" + "z" * 25


@pytest.mark.parametrize("length", [0, 9, 11, 16])
def test_an_id_takes_exactly_ten_random_bytes(length: int) -> None:
    with pytest.raises(ValueError, match="ten random bytes"):
        make_id(0, bytes(length))


def test_a_value_is_frozen_compares_by_content_and_can_be_a_key() -> None:
    tip = Tip(SessionId("s"), 1)
    with pytest.raises(AttributeError):
        tip.n = 2  # type: ignore[misc]
    assert {tip: "here"}[Tip(SessionId("s"), 1)] == "here"
    assert tip != Tip(SessionId("s"), 2)
