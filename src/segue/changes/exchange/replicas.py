"""Replicas: alive while they beat; what a dead one held is free for the others."""

from collections.abc import Iterable

from segue.changes.rows import each, first, one
from segue.core.contracts.database import Transaction, urgent
from segue.core.contracts.wakes import Topic, Wake
from segue.core.lanes import account_key
from segue.core.values import SessionId, Value
from segue.database.statements import q
from segue.errors import Fenced


def join(me: str, seconds: float) -> Transaction[None]:
    """Come alive; it counts as a heartbeat, so that the first one notes this start beside the database."""
    yield q.count_beat()
    yield q.join_replicas(me=me, seconds=seconds)


class Beat(Value, frozen=True):
    """Facts that a replica finds as it lives on."""

    dead: int
    """Replicas whose time was over."""
    version: int
    """The version that the database is at: a newer program may have brought it further."""


@urgent
def beat(me: str, seconds: float) -> Transaction[Beat]:
    """Live on, and free what the dead held.

    A replica that expired is fenced even if nobody has buried it yet: it must come back under a new id.
    """
    if not (yield q.beat(me=me, seconds=seconds)):
        raise Fenced(f"replica {me}")
    yield q.count_beat()
    dead = len((yield q.bury()))
    yield from _free()
    if dead:
        yield from _offer()
    return Beat(dead, (yield from one(int, q.schema_version())))


def leave(me: str) -> Transaction[None]:
    """Go, and free all that is still held."""
    yield q.hand_over(me=me)
    yield q.leave_replicas(me=me)
    yield from _free()
    yield from _offer()


class HeldSession(Value, frozen=True):
    """A session that a replica holds."""

    id: SessionId
    epoch: int


class HeldDelivery(Value, frozen=True):
    """A delivery that a replica holds to send it."""

    id: int
    attempt: int


def held(me: str) -> Transaction[list[HeldSession | HeldDelivery]]:
    """List the sessions and deliveries that a replica holds."""
    sessions = yield from each(HeldSession, q.held_sessions(me=me))
    return [*sessions, *(yield from each(HeldDelivery, q.held_deliveries(me=me)))]


def stopped(me: str) -> Transaction[list[SessionId]]:
    """List the sessions of a replica whose running turn somebody wants to end."""
    return (yield from each(SessionId, q.held_and_stopped(me=me)))


def release(me: str, stranded: Iterable[HeldSession | HeldDelivery]) -> Transaction[int]:
    """Free sessions and deliveries that a replica holds and doesn't work on; returns how many it still held."""
    count = 0
    for one_held in stranded:
        if isinstance(one_held, HeldSession):
            count += len((yield q.release_session(id=one_held.id, me=me, epoch=one_held.epoch)))
        else:
            count += len((yield q.release_delivery(id=one_held.id, me=me, attempt=one_held.attempt)))
    yield from _offer()
    return count


class Taking(Value, frozen=True):
    """How often the connection to an account was taken, and how far its messages were taken in."""

    epoch: int
    cursor: str


class Leased(Value, frozen=True):
    """The one connection to an account, as its holder has it."""

    platform: str
    account: str
    me: str
    epoch: int
    cursor: str
    """How far its messages had been taken in when it was leased."""


def take_connection(platform: str, account: str, me: str) -> Transaction[Leased | None]:
    """Hold the one connection to an account; None if somebody else does."""
    taken = yield from first(Taking, q.take_connection(account=account_key(platform, account), me=me))
    return Leased(platform, account, me, taken.epoch, taken.cursor) if taken else None


def leave_connection(platform: str, account: str, me: str) -> Transaction[None]:
    """Let the connection to an account go."""
    yield q.leave_connection(account=account_key(platform, account), me=me)


def set_cursor(held: Leased, cursor: str) -> Transaction[None]:
    """Keep how far an account's messages were taken in."""
    account = account_key(held.platform, held.account)
    if not (yield q.set_cursor(account=account, me=held.me, epoch=held.epoch, cursor=cursor)):
        raise Fenced(f"the connection to {held.platform}.{held.account}")


def _offer() -> Transaction[None]:
    """Wake whoever may take what was freed."""
    for topic in (Topic.TURNS, Topic.DELIVERIES, Topic.CONNECTIONS):
        yield Wake(topic)


def _free() -> Transaction[None]:
    """Free what nobody alive holds: a replica that woke up late may have taken something after it was buried."""
    yield q.free_sessions()
    yield q.free_deliveries()
    yield q.free_connections()
    yield q.free_windows()
