"""Signed calls: HMAC-SHA256 over the timestamp and the raw body, the same both ways.

X-Segue-Timestamp: unix seconds
X-Segue-Signature: v1=<hex HMAC-SHA256 of "{timestamp}.{raw body}">
"""

import hmac
import re
from collections.abc import Sequence

from segue.core.values import Moment, Secret
from segue.errors import SegueError

TIMESTAMP = "X-Segue-Timestamp"
SIGNATURE = "X-Segue-Signature"
WINDOW = 300
"""Seconds that a timestamp may lie before or after the clock here."""

_SECONDS = re.compile(r"[0-9]{1,12}")
_SIGNED = re.compile(r"v1=([0-9A-Fa-f]{64})")


class Unsigned(SegueError):
    """A call that nobody who knows the secret made, or not now."""


def sign(secret: Secret, body: bytes, at: Moment) -> dict[str, str]:
    """The two headers that prove a body."""
    timestamp = str(int(at))
    return {TIMESTAMP: timestamp, SIGNATURE: f"v1={_digest(secret, timestamp, body).hex()}"}


def verify(secret: Secret, body: bytes, timestamps: Sequence[str], signatures: Sequence[str], now: Moment) -> None:
    """Raise `Unsigned` unless there is one of each header, they prove the body, and the time is now."""
    if len(timestamps) != 1 or not (seconds := _SECONDS.fullmatch(timestamps[0])):
        raise Unsigned(f"Send one {TIMESTAMP}: whole unix seconds.")
    if len(signatures) != 1 or not (signed := _SIGNED.fullmatch(signatures[0])):
        raise Unsigned(f'Send one {SIGNATURE}: v1=<hex HMAC-SHA256 of "{{timestamp}}.{{raw body}}">.')
    if not hmac.compare_digest(_digest(secret, seconds[0], body), bytes.fromhex(signed[1])):
        raise Unsigned(
            "The signature doesn't fit: sign the timestamp as sent and the raw body with this account's secret."
        )
    if abs(now - int(seconds[0])) > WINDOW:
        raise Unsigned(
            f"The timestamp is more than {WINDOW} seconds away from the clock here: sign anew, and set your clock."
        )


def _digest(secret: Secret, timestamp: str, body: bytes) -> bytes:
    return hmac.digest(secret.reveal().encode(), timestamp.encode() + b"." + body, "sha256")
