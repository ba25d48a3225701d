"""Quotes: what the message stands for that somebody replies to, whether Segue sent it or a person did."""

from segue.changes.exchange import deliveries
from segue.changes.people import actors
from segue.changes.places import lanes
from segue.changes.rows import first, one
from segue.changes.sessions import deletions, readings
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Audience, Lane, Place
from segue.core.transcripts import Session, Tip
from segue.core.values import PersonId, SessionId, Value
from segue.database.statements import q


class MessageTurn(Value, frozen=True):
    """The turn that a message became, and the one that answered it."""

    session: SessionId
    seq: int
    answered: int


def entry(address: Address, message: str) -> Transaction[Tip | None]:
    """The entry that a message at an address shows; None if it is in no transcript, or nobody knows it."""
    receipt = yield from deliveries.receipt(address, message)
    if receipt is not None:
        return Tip(SessionId(receipt.session), receipt.entry) if receipt.entry else None
    turn = yield from first(MessageTurn, q.turn_at(message=message, address=address.key))
    if turn is None:
        return None
    shown = yield from deletions.entries(turn.session, turn.seq, turn.answered)
    return Tip(turn.session, shown[-1]) if shown else None


def session(lane: Lane, place: Place, message: str, person: PersonId) -> Transaction[SessionId | None]:
    """The session that wrote a message there, if the lane has spoken to it and whoever reads there has read it whole.

    In a private chat it is one that nobody else reads: a reply takes no words to others unawares.
    """
    receipt = yield from deliveries.receipt(place.address, message)
    if receipt is None:
        return None
    here = yield from lanes.now(lane)
    if not (yield q.been_here(lane=here.key, session=receipt.session)):
        return None
    wrote = yield from one(Session, q.session(session=receipt.session))
    if place.audience is Audience.ONE:
        own = wrote.owner == (yield from actors.now(person))
        read = own and not (yield from readings.shared(wrote.id))
    else:
        read = yield from readings.whole(here.address, wrote.id)
    return wrote.id if read and wrote.closed is None else None
