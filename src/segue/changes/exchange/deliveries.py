"""Deliveries: taken in order per address, sent by whoever holds them, kept as receipts."""

from collections.abc import Collection
from enum import Enum

import msgspec

from segue.changes.rows import RowsOf, batch, each, first
from segue.core.contracts.adapters import StatusReport
from segue.core.contracts.database import Statement, Transaction
from segue.core.contracts.wakes import Hearers, Topic, Wake
from segue.core.lanes import Address, account_key
from segue.core.messages import Delivery, File, Outgoing, Receipt, SendStatus
from segue.core.questions import Question
from segue.core.turns import Claim, Reply
from segue.core.values import Moment, SessionId, Value
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
    return (yield from each(Outgoing, q.outgoing(me=me, account=account_key(platform, account), count=count)))


def delivery_key(session: SessionId, turn: int, part: int) -> str:
    """The key of a turn's delivery, the same for every attempt."""
    return f"{session}/{turn}/{part}"


def keys_between(session: SessionId, turn: int) -> dict[str, str]:
    """Two strings between which all keys of a turn's deliveries lie: `0` follows `/`."""
    return {"first": f"{session}/{turn}/", "last": f"{session}/{turn}0"}


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
    told = Delivery("", address, "", 0, text, key, answers=answers, choices=choices, only=only, file=file)
    yield _add(told, 0, at)
    yield Wake(Topic.DELIVERIES, account_key(address.platform, address.account))


def ask(address: Address, question: Question, key: str, only: str, at: Moment) -> Transaction[None]:
    """Show a question about a turn."""
    yield q.hold_name(name=address.key)
    told = Delivery("", address, question.session or "", 0, question.text, key, choices=question.buttons, only=only)
    yield _add(told, question.turn, at)
    yield Wake(Topic.DELIVERIES, account_key(address.platform, address.account))


def reply(session: SessionId, turn: int, length: int, replies: tuple[Reply, ...], at: Moment) -> Transaction[None]:
    """Add what a turn has to say to what is to be sent; entries are counted from the session's length before it."""
    yield from hold_order({reply.address for reply in replies})
    for part, said in enumerate(replies):
        key, entry = delivery_key(session, turn, part), length + said.entry if said.entry else 0
        told = Delivery("", said.address, session, entry, said.text, key, answers=said.answers, file=said.file)
        yield _add(told, turn, at)


def hold_order(addresses: Collection[Address]) -> Transaction[None]:
    """Have deliveries to each of some addresses get their numbers in the order of their commits."""
    for address in sorted(address.key for address in addresses):
        yield q.hold_name(name=address)


def _add(told: Delivery, turn: int, at: Moment) -> Statement:
    """Something more to be sent; a turn that streams into it has its final text by that."""
    return q.add_delivery(
        key=told.key,
        account=account_key(told.address.platform, told.address.account),
        address=told.address.key,
        session=told.session or None,
        turn=turn,
        entry=told.entry,
        text=told.text,
        answers=msgspec.json.encode(told.answers).decode(),
        choices=msgspec.json.encode(told.choices).decode(),
        files=msgspec.json.encode([told.file] if told.file else []).decode(),
        only=told.only,
        at=at,
    )


def offer(replies: tuple[Reply, ...]) -> Transaction[tuple[Outgoing, ...]]:
    """Wake whoever sends what a turn has to say; nothing of it is taken yet."""
    for account in {account_key(reply.address.platform, reply.address.account) for reply in replies}:
        # Whoever runs turns sends too.
        yield Wake(Topic.DELIVERIES, account, Hearers.HERE)
    return ()


def take(held: Claim, turn: int, replies: tuple[Reply, ...], *, last: bool) -> Transaction[tuple[Outgoing, ...]]:
    """Take the first of a turn's replies, to send it at once, if nothing else waits for its address."""
    key, address = delivery_key(held.session, turn, 0), replies[0].address.key
    [taken] = yield from batch(RowsOf(Outgoing, q.take_own(me=held.me, key=key, address=address)), last=last)
    if len(taken) < len(replies):
        yield from offer(replies)
    return tuple(taken)


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


def taken(held: Outgoing, message: str, seconds: float) -> Transaction[None]:
    """The platform took it, and will tell what became of it within so many seconds."""
    row = {"id": held.id, "me": held.me, "attempt": held.delivery.attempt, "message": message, "seconds": seconds}
    told = yield from first(str, q.taken(**row))
    if told is None:
        raise Fenced(f"delivery {held.id}")
    if told != SendStatus.TAKEN:
        yield Wake(Topic.DELIVERIES, account_key(held.delivery.address.platform, held.delivery.address.account))


def report(report: StatusReport, at: Moment) -> Transaction[bool]:
    """The platform tells what became of a message; returns whether that is news. Whoever sends records it at once."""
    account = account_key(report.platform, report.account)
    era = (yield from first(str, q.setting(name="era"))) or ""
    key = report.key.removeprefix(era) if report.key.startswith(era) else ""
    about = {"account": account, "message": report.message, "why": report.why or None}
    if (yield q.report(key=key, fate=report.fate, **about)):
        yield Wake(Topic.DELIVERIES, account)
        return True
    return report.fate is SendStatus.NEVER and bool((yield q.unsend(at=at, **about)))


def ids_of(chat: Address) -> Transaction[tuple[str, ...]]:
    """Every other id of a chat, the newest last."""
    return tuple(other.chat for other in (yield from each(Address, q.ids_of_chat(address=chat.outside.key))))


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
    if (yield q.left_by_turn(session=held.session, turn=turn)):
        # Other people read there since it was asked.
        return None
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
    """Those of some ids, given in their order, at which a delivery may have left a message that nobody knows.

    It stands after all that was sent to its address before. None while another delivery may have left one, too.
    """
    id, address, chat = int(delivery.id), delivery.address.key, delivery.address.outside
    account = account_key(chat.platform, chat.account)
    if (yield q.unplaced_at(account=account, id=id, chat=chat.key)):
        return []
    found: list[str] = []
    for message in ids:
        is_earlier = yield from first(bool, q.known_at(message=message, chat=chat.key, address=address, id=id))
        if is_earlier is None:
            found.append(message)
        elif is_earlier:
            # An answer above it would come out of order: what stands there was left by an earlier delivery.
            found.clear()
    return found


def give_up(held: Outgoing, error: str, at: Moment) -> Transaction[None]:
    """It can't ever be sent: a dead letter, visible, that can be tried again."""
    if not (yield q.give_up(id=held.id, me=held.me, attempt=held.delivery.attempt, error=error, at=at)):
        raise Fenced(f"delivery {held.id}")


def withdraw(held: Outgoing, at: Moment) -> Transaction[None]:
    """Keep back a message that nobody has sent, because what hung on it is over."""
    if not (yield q.withdraw_delivery(id=held.id, me=held.me, attempt=held.delivery.attempt, at=at)):
        raise Fenced(f"delivery {held.id}")


def dead(count: int) -> Transaction[list[Dead]]:
    """Dead letters, the newest first."""
    return (yield from each(Dead, q.dead_deliveries(count=count)))


def retry(id: int) -> Transaction[None]:
    """Send a dead letter after all, as soon as its address is free."""
    if not (yield q.retry_delivery(id=id)):
        raise Invalid("delivery", f"{id} is no dead letter", "List them first.")
    yield Wake(Topic.DELIVERIES)


def send_again(id: int) -> Transaction[None]:
    """Send a dead letter after all, though nobody knows whether it was sent: somebody wants it."""
    if not (yield q.send_again(id=id)):
        raise Invalid("message", "it was sent or dropped meanwhile", "Nothing is left to do.")
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
