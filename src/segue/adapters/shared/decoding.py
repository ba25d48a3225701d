"""Decodes updates of a platform.

It trusts no update to have the right shape, and treats null as missing.
"""

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
    """Decode parsed JSON; raise `Invalid`, which names the platform, if its shape is wrong."""
    try:
        return converted(_without_nulls(raw), kind)
    except (msgspec.ValidationError, RecursionError) as error:
        why = "It is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise Invalid("event", why, f"{whose}'s documentation says what it looks like.") from error


def text_in(raw: object, *path: str) -> str:
    """Return the text at a path of keys in parsed JSON; empty if there is none."""
    for name in path:
        raw = raw.get(name) if isinstance(raw, dict) else None
    # JSON may contain half of a UTF-16 pair, which can't be encoded.
    return raw.encode(errors="replace").decode() if isinstance(raw, str) else ""


def _without_nulls(raw: object) -> object:
    if isinstance(raw, dict):
        return {key: _without_nulls(value) for key, value in raw.items() if value is not None}
    return [_without_nulls(value) for value in raw] if isinstance(raw, list) else raw


def inside(raw: object, *path: str) -> dict[str, Any]:
    """Return the object at a path of keys in parsed JSON; empty if there is none."""
    for name in path:
        raw = raw.get(name) if isinstance(raw, dict) else None
    return raw if isinstance(raw, dict) else {}


def listed(raw: object) -> list[Any]:
    """Return a value that is a list, else an empty list."""
    return raw if isinstance(raw, list) else []


def understood(raw: Iterable[object], kind: type[T], what: str) -> list[T]:
    """Decode the items that have the right shape, and log the others."""
    found = []
    for one in raw:
        try:
            found.append(converted(one, kind))
        except msgspec.ValidationError as error:
            log.warning("something that was told about %s can't be understood: %s", what, error)
    return found
