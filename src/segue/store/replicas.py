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
    for (holder,) in dead:
        yield from _free(holder)
    return len(dead)


def leave(me: str) -> Transaction[None]:
    """Go, and free all that is still held."""
    yield from _free(me)
    yield q.leave_replicas(me=me)


def _free(holder: str) -> Transaction[None]:
    yield q.free_sessions(holder=holder)
    yield q.free_deliveries(holder=holder)
    yield q.free_connections(holder=holder)
