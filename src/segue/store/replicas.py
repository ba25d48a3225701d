"""Replicas: alive while they beat; what a dead one held is free for the others."""

from __future__ import annotations

from segue.core.contracts import Transaction
from segue.errors import Fenced
from segue.store.statements import q


def join(me: str, seconds: float) -> Transaction[None]:
    """Come alive."""
    yield q.join_replicas(me=me, seconds=seconds)


def beat(me: str, seconds: float) -> Transaction[int]:
    """Live on, and free what the dead held; returns how many were dead.

    A replica that expired is fenced even if nobody has buried it yet: it must come back under a new id.
    """
    if not (yield q.beat(me=me, seconds=seconds)):
        raise Fenced(f"replica {me}")
    dead = yield q.bury()
    yield from _free()
    return len(dead)


def leave(me: str) -> Transaction[None]:
    """Go, and free all that is still held."""
    yield q.leave_replicas(me=me)
    yield from _free()


def _free() -> Transaction[None]:
    """Free what nobody alive holds: a replica that woke up late may have taken something after it was buried."""
    yield q.free_sessions()
    yield q.free_deliveries()
    yield q.free_connections()
