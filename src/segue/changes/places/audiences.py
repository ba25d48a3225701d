"""Audiences: what becomes of a place when other people come to read it.

Law: what was said in a private chat belongs to its person, never to the address. When the chat becomes a group, or
another person speaks there, its lanes are released from their sessions and the record of what it has read is dropped.

Law: the addresses of a chat are locked before its lanes, and the lanes before their sessions.
"""

from segue.changes.places.lanes import after
from segue.changes.rows import each
from segue.changes.sessions import moves
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Audience, Lane, Place
from segue.core.moves import Why
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q

_NOBODY = PersonId("")


class BoundSession(Value, frozen=True):
    """A lane, the session that it speaks to, and the session's owner."""

    lane: Lane
    session: SessionId
    owner: PersonId


def widen(place: Place, move: str, at: Moment) -> Transaction[bool]:
    """Let a chat and its threads start afresh if they were private and aren't any more; returns whether they did."""
    if place.audience is Audience.ONE:
        return False
    chat = place.address.outside.key
    # The first transaction that changes the kind goes on. Others wait for it here and find nothing left to do.
    widened = yield from each(Address, q.widen_places(kind=place.kind, chat=chat, after=after(chat)))
    for n, address in enumerate(sorted(widened)):
        yield q.forget_home_at(address=address.key)
        yield q.withdraw_deliveries_at(address=address.key, at=at)
        yield from _start_afresh(address, _NOBODY, f"{move}/audience/{n}", at)
    return bool(widened)


def keep_private(address: Address, person: PersonId, move: str, at: Moment) -> Transaction[bool]:
    """Let a private chat start afresh if it speaks to somebody else's session; returns whether it did."""
    if not address.chat:
        # Such lanes are keyed by their persons.
        return False
    chat = address.outside.key
    yield q.narrow_places(chat=chat, after=after(chat))
    theirs = [bound for bound in (yield from _speaking(address.outside)) if bound.owner != person]
    for n, place in enumerate(sorted({bound.lane.address for bound in theirs})):
        yield q.withdraw_deliveries_at(address=place.key, at=at)
        yield from _start_afresh(place, person, f"{move}/audience/{n}", at)
    return bool(theirs)


def _speaking(chat: Address) -> Transaction[list[BoundSession]]:
    """What the lanes of a chat and of its threads speak to."""
    return (yield from each(BoundSession, q.sessions_spoken_to(chat=chat.key, after=after(chat.key))))


def _start_afresh(address: Address, but: PersonId, move: str, at: Moment) -> Transaction[None]:
    """Release the lanes of an address and drop what it has read, but for one person's sessions."""
    for lane in (yield from each(Lane, q.lanes_at(address=address.key))):
        yield q.lock_lane(lane=lane.key)
    yield q.add_move(move=move, kind="audience", lane=None, session=None, by=but, at=at)
    for bound in (yield from _speaking(address.outside)):
        if bound.lane.address == address and bound.owner != but:
            yield from moves.bind(bound.lane, None, Why.AUDIENCE, but, move, at)
    yield q.start_afresh(address=address.key, at=at)
    yield q.part_lanes_at(address=address.key, but=but, at=at)
    yield q.forget_readings_at(address=address.key, but=but)
