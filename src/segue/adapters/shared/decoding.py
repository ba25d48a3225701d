"""What a platform delivers, decoded: nothing is trusted to have the right shape, and what is null isn't there."""

import logging
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from segue.core.values import Value, converted
from segue.errors import Invalid

T = TypeVar("T")
V = TypeVar("V", bound=Value)
log = logging.getLogger(__name__)


def decode(raw: object, kind: type[V], whose: str) -> V:
    """What was delivered, from what JSON held; raises `Invalid`, which names the platform."""
    try:
        return converted(_without_nulls(raw), kind)
    except (msgspec.ValidationError, RecursionError) as error:
        why = "It is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise Invalid("event", why, f"{whose}'s documentation says what it looks like.") from error


def text_in(raw: object, *path: str) -> str:
    """The text under some names inside each other, in what JSON held; empty if there is none."""
    for name in path:
        raw = raw.get(name) if isinstance(raw, dict) else None
    # Half of a UTF-16 pair can be told, and not be written.
    return raw.encode(errors="replace").decode() if isinstance(raw, str) else ""


def _without_nulls(raw: object) -> object:
    if isinstance(raw, dict):
        return {key: _without_nulls(value) for key, value in raw.items() if value is not None}
    return [_without_nulls(value) for value in raw] if isinstance(raw, list) else raw


def inside(raw: object, *path: str) -> dict[str, Any]:
    """An object inside of what JSON held; an empty one if there is none."""
    for name in path:
        raw = raw.get(name) if isinstance(raw, dict) else None
    return raw if isinstance(raw, dict) else {}


def listed(raw: object) -> list[Any]:
    """A list that JSON held; an empty one if it is none."""
    return raw if isinstance(raw, list) else []


def understood(raw: Iterable[object], kind: type[T], what: str) -> list[T]:
    """Those of several things that can be understood; the log says of the others what they are told about."""
    found = []
    for one in raw:
        try:
            found.append(converted(one, kind))
        except msgspec.ValidationError as error:
            log.warning("something that was told about %s can't be understood: %s", what, error)
    return found
