"""Unicode's normal forms of what people write, in time that grows with its length alone."""

import unicodedata
from collections.abc import Iterator
from typing import Literal

_MARKS = 30
"""Marks on one character: Unicode's stream-safe format (UAX #15) finds no language that needs more."""
_DISGUISED = frozenset("\u0f73\u0f75\u0f81\uff9e\uff9f")
"""Characters that are no marks and come apart into marks."""


def normal(text: str, most: int, form: Literal["NFC", "NFKC"] = "NFKC") -> str:
    """The first `most` characters of a text in a normal form, with at most 30 marks on each.

    Marks are put in order, which takes the square of their number: so they are counted first. They are counted again
    afterwards, because some come apart into two.
    """
    text = text[:most]
    return text if text.isascii() else _spared(unicodedata.normalize(form, _spared(text))[:most])


def _spared(text: str) -> str:
    return "".join(_few_marks(text))


def _few_marks(text: str) -> Iterator[str]:
    marks = 0
    for c in text:
        marks = marks + 1 if unicodedata.combining(c) or c in _DISGUISED else 0
        if marks <= _MARKS:
            yield c
