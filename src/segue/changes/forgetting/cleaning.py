"""Cleaning up after a forgetting: what was said about it, and what stands on platforms."""

import msgspec

from segue.changes.exchange import deliveries
from segue.changes.forgetting.erasure import Cause, ForgettingKind, Removed
from segue.changes.rows import each, one
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address
from segue.core.values import Moment, Value
from segue.database.statements import q

_taken = msgspec.json.Decoder(Removed)


class Forgetting(Value, frozen=True):
    """Something that was forgotten and isn't cleaned up after."""

    id: int
    kind: ForgettingKind
    why: Cause
    at: Moment
    address: str
    answers: tuple[str, ...]
    taken: str

    @property
    def took(self) -> Removed:
        """Its result."""
        return _taken.decode(self.taken)


class LeftMessage(Value, frozen=True):
    """A message on a platform that showed what was forgotten."""

    id: int
    address: Address
    message: str


def last() -> Transaction[int]:
    """The number of the newest forgetting."""
    return (yield from one(int, q.last_forgetting()))


def to_clean(count: int) -> Transaction[list[Forgetting]]:
    """Forgettings that aren't cleaned up after, the oldest first."""
    return (yield from each(Forgetting, q.forgettings_to_clean(count=count)))


def clear_notices(forgetting: Forgetting) -> Transaction[bool]:
    """Clear what the gateway said where it may have quoted it; returns whether none of that is still to be sent."""
    settled = True
    for address in forgetting.took.places:
        yield q.clear_notices(address=address)
        yield q.clear_asked(address=address)
        settled = settled and not (yield q.notices_unsent(address=address, at=forgetting.at))
    return settled


def standing(forgetting: int) -> Transaction[list[LeftMessage]]:
    """The messages on platforms that showed what was forgotten."""
    return (yield from each(LeftMessage, q.sent_of_forgotten(forgetting=forgetting)))


def deleted(message: LeftMessage) -> Transaction[None]:
    """A message is gone from its platform."""
    yield q.deleted(id=message.id)


def done(forgetting: Forgetting, receipt: str, at: Moment) -> Transaction[bool]:
    """All is clean: tell whoever waits for the receipt, once."""
    if not (yield q.cleaned(id=forgetting.id, at=at)):
        return False
    if forgetting.address:
        address = Address.parse(forgetting.address)
        yield from deliveries.notify(address, receipt, f"forgotten/{forgetting.id}", forgetting.answers, at)
    return True
