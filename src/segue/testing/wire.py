"""What the fake platform sends over its wire: one shape for all personas, as JSON."""

import hashlib
import hmac

import msgspec

from segue.core.lanes import Kind
from segue.core.values import Moment, Value


class Writer(Value, frozen=True):
    """Who wrote a message, as the platform tells it."""

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


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Update)


def encode(update: Update) -> bytes:
    """An update as it travels."""
    return _encoder.encode(update)


def decode(body: bytes) -> Update:
    """The update that travelled; raises `msgspec.DecodeError` for anything else."""
    return _decoder.decode(body)


def proof(secret: str, body: bytes) -> str:
    """What only somebody who knows the secret can write beside a body."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
