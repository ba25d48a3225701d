"""Replicas: alive while they beat; what a dead one held is free for the others."""

from __future__ import annotations

from segue.core.contracts import Transaction
from segue.core.lanes import account_key
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
    yield q.hand_over(me=me)
    yield q.leave_replicas(me=me)
    yield from _free()


def take_connection(platform: str, account: str, me: str) -> Transaction[str | None]:
    """Hold the one connection to an account; returns how far its messages were taken in, None if it is held."""
    rows = yield q.take_connection(account=account_key(platform, account), me=me)
    return rows[0][1] if rows else None


def leave_connection(platform: str, account: str, me: str) -> Transaction[None]:
    """Let the connection to an account go."""
    yield q.leave_connection(account=account_key(platform, account), me=me)


def set_cursor(platform: str, account: str, me: str, cursor: str) -> Transaction[None]:
    """Keep how far an account's messages were taken in."""
    if not (yield q.set_cursor(account=account_key(platform, account), me=me, cursor=cursor)):
        raise Fenced(f"the connection to {platform}.{account}")


def _free() -> Transaction[None]:
    """Free what nobody alive holds: a replica that woke up late may have taken something after it was buried."""
    yield q.free_sessions()
    yield q.free_deliveries()
    yield q.free_connections()
