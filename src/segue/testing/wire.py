"""Updates that the fake platform sends, and the feed that tells each of them until it is acknowledged."""

import hashlib
import hmac
from collections.abc import AsyncIterator

import msgspec

from segue.core.lanes import Kind
from segue.core.values import Moment, Value
from segue.testing.ledger import Attached
from segue.testing.waits import Changes


class Writer(Value, frozen=True):
    """The writer of a message, as the platform tells it."""

    id: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    agent: bool = False
    """It is the account's own message, told back to it."""


class Update(Value, frozen=True):
    """The platform tells that a message was written or changed."""

    event: str
    """The id of this telling."""
    message: str
    chat: str
    kind: Kind
    by: Writer
    text: str
    at: Moment
    space: str = ""
    chat_name: str = ""
    chat_aliases: tuple[str, ...] = ()
    topic: str = ""
    thread: str = ""
    quotes: str = ""
    edits: str = ""
    mentions: bool = False
    deletes: str = ""
    """The message that its writer took back; then there are no words."""
    files: tuple[Attached, ...] = ()


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Update)


def encode(update: Update) -> bytes:
    """An update as it travels."""
    return _encoder.encode(update)


def decode(body: bytes) -> Update:
    """The update that travelled; raises `msgspec.DecodeError` for anything else."""
    return _decoder.decode(body)


def proof(secret: str, body: bytes) -> str:
    """The proof beside a body, which only somebody who knows the secret can write."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


class Parcel(Value, frozen=True):
    """One thing told: its place in the order, the raw body, and the proof of who sent it."""

    number: int
    body: bytes
    proof: str


class Feed:
    """Parcels that nobody has acknowledged yet."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._waiting: dict[int, Parcel] = {}
        self._told = 0
        self.open = True

    def put(self, body: bytes, proof: str) -> None:
        """Something new to tell, or something old once more."""
        self._told += 1
        self._waiting[self._told] = Parcel(self._told, body, proof)
        self._changes.tell()

    def acknowledge(self, parcel: Parcel) -> None:
        """It may be forgotten."""
        self._waiting.pop(parcel.number, None)
        self._changes.tell()

    @property
    def unacknowledged(self) -> int:
        """The number of parcels that the next connection would be told again."""
        return len(self._waiting)

    async def parcels(self) -> AsyncIterator[Parcel]:
        """A connection: all that waits, the oldest first, then what comes."""
        last = 0
        while True:
            number = next((n for n in self._waiting if n > last), None) if self.open else None
            if number is None:
                await self._changes.next()
            else:
                last = number
                yield self._waiting[number]
