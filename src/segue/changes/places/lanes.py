"""Lanes: which lane one is now, if its chat turned out to have another id or its person to be somebody else."""

from segue.changes.people import actors
from segue.changes.rows import first
from segue.changes.sessions.rows import Bound
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Lane
from segue.core.values import PersonId, SessionId
from segue.database.statements import q
from segue.database.transactions import Moved


def now(lane: Lane) -> Transaction[Lane]:
    """The current lane, after aliases and merges."""
    lane = yield from settled(lane)
    if lane.person:
        lane = Lane(lane.address, (yield from actors.now(PersonId(lane.person))))
    return lane


def hold(lane: Lane) -> Transaction[bool]:
    """Keep a lane as it is until the transaction ends; returns whether it was ever seen.

    Whoever makes it another one locks it too: only now is it sure that it wasn't before.
    """
    seen = bool((yield q.lock_lane(lane=lane.key)))
    if (yield from now(lane)) != lane:
        raise Moved
    return seen


def speaks_to(lane: Lane) -> Transaction[SessionId | None]:
    """The session that a lane speaks to, by its id; the lane is the one of now."""
    bound = yield from first(Bound, q.bound(lane=lane.key))
    return bound.session if bound else None


def hold_merges() -> Transaction[None]:
    """Let nobody else merge chats or persons meanwhile: each makes lanes for what the other takes away."""
    yield q.hold_name(name="merges")


def settled(lane: Lane) -> Transaction[Lane]:
    """The same person's share, or all, of the chat under the id that it was first known by."""
    chat = yield from first(Address, q.alias(alias=lane.address.outside.key))
    if chat is None:
        return lane
    address = Address(chat.platform, chat.account, chat.space, chat.chat, lane.address.thread)
    return Lane(address, lane.person)


def after(chat: str) -> str:
    """The end of a chat's threads: a key ends in `/` and the thread, and `0` comes right after `/`."""
    return f"{chat[:-1]}0"
