"""The base of Segue's values and the ids that name them.

Values are frozen and compare by content. Time, ids and randomness come in as arguments, so the core is a function of
them.
"""

from __future__ import annotations

from typing import NewType

import msgspec

SessionId = NewType("SessionId", str)
PersonId = NewType("PersonId", str)
Moment = float
"""Seconds since 1970, UTC."""

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = tuple(high + low for high in _DIGITS for low in _DIGITS)
_SHIFTS = tuple(range(120, -1, -10))


class Value(msgspec.Struct, frozen=True):
    """A frozen value that compares by content."""


def make_id(at: Moment, randomness: bytes) -> str:
    """A 26-character id that sorts by time: 48 bits of milliseconds, then ten random bytes."""
    if len(randomness) != 10:
        raise ValueError("an id needs ten random bytes")
    number = (int(at * 1000) & ((1 << 48) - 1)) << 80 | int.from_bytes(randomness)
    return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])
