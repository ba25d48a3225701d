"""Deliveries: taken in order per address, sent by whoever holds them, kept as receipts."""

from __future__ import annotations

import msgspec

from segue.core.contracts import Transaction
from segue.core.lanes import Address, account_key
from segue.core.messages import Delivery, Receipt
from segue.core.values import Moment, Value
from segue.errors import Fenced
from segue.store.statements import q

_answers = msgspec.json.Decoder(tuple[str, ...])


class Outgoing(Value, frozen=True):
    """A delivery that this replica holds."""

    id: int
    me: str
    delivery: Delivery


def outgoing(me: str, platform: str, account: str, count: int) -> Transaction[list[Outgoing]]:
    """Take the oldest unsent delivery of each address of an account."""
    rows = yield q.outgoing(me=me, account=account_key(platform, account), count=count)
    taken = []
    for id, attempt, key, address, session, _, entry, text, answers, message in rows:
        delivery = Delivery(
            str(id),
            Address.parse(address),
            session or "",
            entry,
            text,
            key,
            message,
            attempt,
            _answers.decode(answers),
        )
        taken.append(Outgoing(id, me, delivery))
    return taken


def sent(held: Outgoing, message: str, at: Moment) -> Transaction[None]:
    """It was sent: keep the receipt."""
    if not (yield q.sent(id=held.id, me=held.me, attempt=held.delivery.attempt, message=message, at=at)):
        raise Fenced(f"delivery {held.id}")


def unsent(held: Outgoing, delay: float, error: str) -> Transaction[None]:
    """It couldn't be sent now: again after a delay."""
    if not (yield q.unsent(id=held.id, me=held.me, attempt=held.delivery.attempt, delay=delay, error=error)):
        raise Fenced(f"delivery {held.id}")


def give_up(held: Outgoing, error: str, at: Moment) -> Transaction[None]:
    """It can't ever be sent: a dead letter, visible, that can be tried again."""
    if not (yield q.give_up(id=held.id, me=held.me, attempt=held.delivery.attempt, error=error, at=at)):
        raise Fenced(f"delivery {held.id}")


def receipt(address: Address, message: str) -> Transaction[Receipt | None]:
    """The receipt of a message, if Segue sent it."""
    rows = yield q.receipt(message=message, address=address.key)
    return Receipt(Address.parse(rows[0][0]), *rows[0][1:]) if rows else None
