"""Attempts: a part of a transaction that leaves nothing behind if it is refused, so that the rest can go on."""

from __future__ import annotations

from typing import TypeVar

from segue.core.contracts import Transaction
from segue.errors import Invalid, Refused
from segue.store.statements import q

T = TypeVar("T")


def attempt(steps: Transaction[T]) -> Transaction[T]:
    """Run some steps; if they are refused, what they wrote until then is taken back before the refusal goes on."""
    yield q.mark()
    try:
        done = yield from steps
    except (Refused, Invalid):
        yield q.back_to_mark()
        yield q.forget_mark()
        raise
    yield q.forget_mark()
    return done
