"""The updates of the fake platform, and the feed that delivers each until it is acknowledged."""

import hashlib
import hmac
from collections.abc import AsyncIterator

import msgspec

from segue.core.lanes import Kind
from segue.core.values import Moment, Value
from segue.testing.ledger import Attached
from segue.testing.waits import Changes


class Writer(Value, frozen=True):
    """The author of a message, as the platform reports it."""

    id: str
    name: str = ""
    aliases: tuple[str, ...] = ()
    agent: bool = False
    """Whether it is the account's own message."""


class Update(Value, frozen=True):
    """A report of a new or changed message."""

    event: str
    """The id of this report."""
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
    """The message that its author deleted; the update then has no text."""
    files: tuple[Attached, ...] = ()


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Update)


def encode(update: Update) -> bytes:
    """Encode an update for the wire."""
    return _encoder.encode(update)


def decode(body: bytes) -> Update:
    """Decode an update; raise `msgspec.DecodeError` for anything else."""
    return _decoder.decode(body)


def proof(secret: str, body: bytes) -> str:
    """Return the proof for a body. Only the holder of the secret can make it."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


class Parcel(Value, frozen=True):
    """One delivery: its number, the raw body, and the sender's proof."""

    number: int
    body: bytes
    proof: str


class Feed:
    """Deliveries that aren't acknowledged yet."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._waiting: dict[int, Parcel] = {}
        self._told = 0
        self.open = True

    def put(self, body: bytes, proof: str) -> None:
        """Add a new delivery or repeat an old one."""
        self._told += 1
        self._waiting[self._told] = Parcel(self._told, body, proof)
        self._changes.tell()

    def acknowledge(self, parcel: Parcel) -> None:
        """Remove a delivery."""
        self._waiting.pop(parcel.number, None)
        self._changes.tell()

    @property
    def unacknowledged(self) -> int:
        """The number of deliveries that the next connection would receive again."""
        return len(self._waiting)

    async def parcels(self) -> AsyncIterator[Parcel]:
        """Yield the waiting deliveries, oldest first, then new ones."""
        last = 0
        while True:
            number = next((n for n in self._waiting if n > last), None) if self.open else None
            if number is None:
                await self._changes.next()
            else:
                last = number
                yield self._waiting[number]
