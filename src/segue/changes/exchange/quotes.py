"""Quotes: what the message stands for that somebody replies to, whether Segue sent it or a person did."""

from __future__ import annotations

from collections.abc import Sequence

from segue.changes.exchange import deliveries
from segue.changes.people import actors
from segue.changes.places import lanes
from segue.core.contracts.database import Row, Transaction
from segue.core.lanes import Address, Lane
from segue.core.transcripts import Tip
from segue.core.values import PersonId, SessionId
from segue.database.statements import q


def entry(address: Address, message: str) -> Transaction[Tip | None]:
    """The entry that a message at an address shows; None if it is in no transcript, or nobody knows it."""
    receipt = yield from deliveries.receipt(address, message)
    if receipt is not None:
        return Tip(SessionId(receipt.session), receipt.entry) if receipt.entry else None
    rows = yield q.turn_at(message=message, address=address.key)
    if not rows:
        return None
    session, seq, answered, _, _ = rows[0]
    asked = yield q.turns_within(session=session, turn=answered)
    entries = yield from _last_asked((yield q.asked_in(session=session, turn=answered)), SessionId(session))
    at = [turn for (turn,) in asked].index(seq) if (seq,) in map(tuple, asked) else len(entries)
    return Tip(SessionId(session), entries[at][0]) if at < len(entries) else None


def _last_asked(entries: Sequence[Row], session: SessionId) -> Transaction[Sequence[Row]]:
    """The same entries, or those as which they were asked again: a retry leaves the first ones behind."""
    if not entries:
        return entries
    again = yield q.asked_again(session=session, n=entries[0][0])
    return (yield q.asked_in(session=session, turn=again[0][0])) if again else entries


def session(lane: Lane, message: str, person: PersonId) -> Transaction[SessionId | None]:
    """The session that wrote a message, if the lane has spoken to it and this person may bring it back there."""
    receipt = yield from deliveries.receipt(lane.address, message)
    if receipt is None:
        return None
    here = yield from lanes.now(lane)
    if not (yield q.been_here(lane=here.key, session=receipt.session)):
        return None
    [row] = yield q.session(session=receipt.session)
    owner, closed, origin = row[1], row[10], row[11]
    mine = owner == (yield from actors.now(person)) or origin == here.key
    return SessionId(receipt.session) if mine and closed is None else None
