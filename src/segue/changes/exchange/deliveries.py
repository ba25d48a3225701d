"""Deliveries: taken in order per address, sent by whoever holds them, kept as receipts."""

from enum import Enum

import msgspec

from segue.changes.exchange.turns import DueDelivery, delivery_key, encode_file
from segue.changes.rows import batch, each, first
from segue.core.contracts.database import Transaction
from segue.core.contracts.wakes import Topic, Wake
from segue.core.lanes import Address, account_key
from segue.core.messages import Delivery, File, Outgoing, Receipt
from segue.core.questions import Question, listed
from segue.core.turns import Claim
from segue.core.values import Moment, Value
from segue.database.statements import q
from segue.errors import Fenced, Invalid


class Attempt(Enum):
    """Outcomes of an attempt that didn't succeed."""

    REFUSED = "the platform did not take the message"
    UNSURE = "nobody knows whether the platform took it"


class OpenStream(Value, frozen=True):
    """The delivery that a turn streams into, its key for the platform, and the platform's id of it, if it has one."""

    id: str
    key: str
    message: str


class Dead(Value, frozen=True):
    """A delivery that was given up, and why."""

    id: int
    address: Address
    session: str | None
    text: str
    error: str
    at: Moment


def outgoing(me: str, platform: str, account: str, count: int) -> Transaction[list[Outgoing]]:
    """Take the oldest unsent delivery of each address of an account."""
    taken = yield from each(DueDelivery, q.outgoing(me=me, account=account_key(platform, account), count=count))
    return [due.held_by(me) for due in taken]


def notify(
    address: Address,
    text: str,
    key: str,
    answers: tuple[str, ...],
    at: Moment,
    choices: tuple[str, ...] = (),
    file: File | None = None,
    only: str = "",
) -> Transaction[None]:
    """Say something that is in no transcript."""
    yield q.hold_name(name=address.key)
    yield q.add_delivery(
        key=key,
        account=account_key(address.platform, address.account),
        address=address.key,
        session=None,
        turn=0,
        entry=0,
        text=text,
        answers=msgspec.json.encode(answers).decode(),
        choices=msgspec.json.encode(choices).decode(),
        files=encode_file(file) if file else "[]",
        only=only,
        at=at,
    )
    yield Wake(Topic.DELIVERIES, account_key(address.platform, address.account))


def ask(address: Address, question: Question, key: str, only: str, at: Moment) -> Transaction[None]:
    """Show a question that a turn asks; its choices are a list in it only where buttons can't say them."""
    listed_too = question.buttons != question.choices
    yield q.hold_name(name=address.key)
    yield q.add_delivery(
        key=key,
        account=account_key(address.platform, address.account),
        address=address.key,
        session=question.session,
        turn=question.turn,
        entry=0,
        text=f"{question.words}\n\n{listed(question.choices)}" if listed_too else question.words,
        answers="[]",
        choices=msgspec.json.encode(question.buttons).decode(),
        files="[]",
        only=only,
        at=at,
    )
    yield Wake(Topic.DELIVERIES, account_key(address.platform, address.account))


def sent(held: Outgoing, message: str, at: Moment, *, last: bool = True) -> Transaction[bool]:
    """It was sent: keep the receipt; returns whether more waits for its address.

    Whoever brings more waits for this, or was before it: nothing is overlooked by both.
    """
    address = held.delivery.address.key
    yield q.hold_name(name=address)
    kept, more = yield from batch(
        q.sent(id=held.id, me=held.me, attempt=held.delivery.attempt, message=message, at=at),
        q.unsent_at(address=address, key=held.delivery.key),
        last=last,
    )
    if not kept:
        raise Fenced(f"delivery {held.id}")
    return bool(more)


def unsent(held: Outgoing, outcome: Attempt, delay: float, error: str) -> Transaction[None]:
    """It couldn't be sent now: again after a delay."""
    certain = 1 if outcome is Attempt.REFUSED else 0
    attempt = held.delivery.attempt
    if not (yield q.unsent(id=held.id, me=held.me, attempt=attempt, delay=delay, error=error, certain=certain)):
        raise Fenced(f"delivery {held.id}")


def open_stream(
    held: Claim, turn: int, address: Address, answers: tuple[str, ...], at: Moment
) -> Transaction[Delivery | None]:
    """A message that a running turn streams into; None while older messages wait to be sent there."""
    if not (yield q.hold(session=held.session, me=held.me, epoch=held.epoch)):
        raise Fenced(f"session {held.session}")
    key = delivery_key(held.session, turn, 0)
    yield q.hold_name(name=address.key)
    if (yield q.unsent_at(address=address.key, key=key)):
        return None
    stream = yield from first(
        OpenStream,
        q.open_stream(
            key=key,
            account=account_key(address.platform, address.account),
            address=address.key,
            session=held.session,
            turn=turn,
            answers=msgspec.json.encode(answers).decode(),
            me=held.me,
            epoch=held.epoch,
            at=at,
        ),
    )
    if stream is None:
        return None
    return Delivery(stream.id, address, held.session, 0, "", stream.key, stream.message, answers=answers)


def placed(delivery: Delivery, me: str, message: str) -> Transaction[None]:
    """The platform's id of a message that isn't final yet: every later attempt edits it."""
    if not (yield q.placed(id=int(delivery.id), me=me, message=message)):
        raise Fenced(f"delivery {delivery.id}")


def unknown(delivery: Delivery, ids: tuple[str, ...]) -> Transaction[list[str]]:
    """Those of some ids that are no message of ours which is known; none while another delivery may have them."""
    chat = delivery.address.outside
    account = account_key(chat.platform, chat.account)
    if (yield q.unplaced_at(account=account, id=int(delivery.id), chat=chat.key)):
        return []
    found: list[str] = []
    for message in ids:
        found += [] if (yield q.known_at(message=message, chat=chat.key)) else [message]
    return found


def give_up(held: Outgoing, error: str, at: Moment) -> Transaction[None]:
    """It can't ever be sent: a dead letter, visible, that can be tried again."""
    if not (yield q.give_up(id=held.id, me=held.me, attempt=held.delivery.attempt, error=error, at=at)):
        raise Fenced(f"delivery {held.id}")


def dead(count: int) -> Transaction[list[Dead]]:
    """Dead letters, the newest first."""
    return (yield from each(Dead, q.dead_deliveries(count=count)))


def retry(id: int) -> Transaction[None]:
    """Send a dead letter after all, as soon as its address is free."""
    if not (yield q.retry_delivery(id=id)):
        raise Invalid("delivery", f"{id} is no dead letter", "List them first.")
    yield Wake(Topic.DELIVERIES)


def dead_one(id: int) -> Transaction[Dead]:
    """One that couldn't be sent."""
    found = yield from first(Dead, q.dead_delivery(id=id))
    if found is None:
        raise Invalid("letter", f"out-{id} is no dead letter", "`segue letters list` lists them.")
    return found


def drop(id: int, at: Moment) -> Transaction[None]:
    """Send a dead letter never."""
    if not (yield q.drop_delivery(id=id, at=at)):
        raise Invalid("letter", f"out-{id} is no dead letter", "`segue letters list` lists them.")


def receipt(address: Address, message: str) -> Transaction[Receipt | None]:
    """The receipt of a message, if Segue sent it, under whichever id its chat had then."""
    found = yield from first(Receipt, q.receipt(message=message, address=address.key))
    if found is None:
        aliases = yield from each(str, q.aliases_of(address=address.outside.key))
        thread = address.key.removeprefix(address.outside.key)
        for alias in aliases:
            found = found or (yield from first(Receipt, q.receipt(message=message, address=f"{alias}{thread}")))
    return found
