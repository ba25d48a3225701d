"""Ids: 26 characters, in the order of time, never twice the same. Values: the collector sees those that are live."""

import enum
import importlib
import types
import typing
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segue
from segue.core.transcripts import Tip
from segue.core.values import Plain, Secret, SessionId, Value, make_id

LIFELESS = {str, int, float, bool, bytes, types.NoneType, Path, Secret, datetime}
HOLDERS = {tuple, frozenset, list, dict, Mapping, typing.Literal, typing.Union, types.UnionType}

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


def every_value(base: type[Value] = Value) -> Iterator[type[Value]]:
    for kind in base.__subclasses__():
        yield kind
        yield from every_value(kind)


def live_parts(hint: typing.Any) -> Iterator[object]:
    """What is live in a type, or might be."""
    origin = typing.get_origin(hint)
    if hint is Plain or hint is Ellipsis or hint in LIFELESS or origin is typing.Literal:
        return
    if origin is typing.Annotated:
        yield from live_parts(typing.get_args(hint)[0])
    elif isinstance(hint, typing.NewType):
        yield from live_parts(hint.__supertype__)
    elif origin in HOLDERS:
        for inner in typing.get_args(hint):
            yield from live_parts(inner)
    elif not (isinstance(hint, type) and (issubclass(hint, enum.Enum) or _unseen(hint))):
        yield hint


def _unseen(kind: type) -> bool:
    """Whether a type is that of values which the collector of cycles doesn't look at."""
    return issubclass(kind, Value) and not kind.__struct_config__.gc


def test_a_value_that_holds_something_live_is_seen_by_the_collector_of_cycles() -> None:
    source = Path(segue.__file__).parent
    for path in source.rglob("*.py"):
        # The rest defines no values, and some of it imports the heavy libraries of providers.
        if "frozen=True" in path.read_text():
            importlib.import_module(".".join(path.relative_to(source.parent).with_suffix("").parts))
    unseen = [kind for kind in every_value() if _unseen(kind) and kind.__module__.startswith("segue.")]
    hints = {kind: typing.get_type_hints(kind, include_extras=True) for kind in unseen}
    fields = [(kind, field, hints[kind][field]) for kind in unseen for field in kind.__struct_fields__]
    found = {f"{kind.__qualname__}.{field}": live for kind, field, hint in fields if (live := list(live_parts(hint)))}
    assert len(unseen) > 100
    assert found == {}
