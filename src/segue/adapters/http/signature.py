"""Signed calls: HMAC-SHA256 over the timestamp and the raw body; the second version names account and direction, too.

X-Segue-Timestamp: unix seconds
X-Segue-Signature: v1=<hex HMAC-SHA256 of "{timestamp}.{raw body}">
                or v2=<hex HMAC-SHA256 of "v2.{in|out}.{account}.{timestamp}.{raw body}">, or both, with a comma between
"""

import hmac
import re
from collections.abc import Sequence
from typing import Literal

from segue.core.values import Moment, Secret, Value
from segue.errors import SegueError

TIMESTAMP = "X-Segue-Timestamp"
SIGNATURE = "X-Segue-Signature"
WINDOW = 300
"""Seconds that a timestamp may lie before or after the clock here."""

_SECONDS = re.compile(r"[0-9]{1,12}")
_SIGNED = re.compile(r"(v[12])=([0-9A-Fa-f]{64})")

Version = Literal["v1", "v2"]


class Unsigned(SegueError):
    """A call that nobody who knows the secret made, or not now."""


class Signing(Value, frozen=True):
    """The secrets of an account, and the signatures that its calls carry both ways."""

    secrets: tuple[Secret, ...]
    """The first signs; a call that any of them signed comes in, so that one can be replaced while both work."""
    account: str = ""
    versions: tuple[Version, ...] = ("v1",)
    """Signatures that are sent, and that a call must have; one that it has beside them must fit, too."""

    @classmethod
    def of(cls, secret: "Secret | Signing", account: str = "") -> "Signing":
        """The signing of an account that has one secret and nothing else to say about it."""
        return secret if isinstance(secret, Signing) else cls((secret,), account)

    def sign(self, body: bytes, at: Moment) -> dict[str, str]:
        """The two headers that prove a body on its way out."""
        timestamp = str(int(at))
        proofs = (f"{v}={self._digest(self.secrets[0], v, 'out', timestamp, body).hex()}" for v in self.versions)
        return {TIMESTAMP: timestamp, SIGNATURE: ",".join(proofs)}

    def verify(self, body: bytes, timestamps: Sequence[str], signatures: Sequence[str], now: Moment) -> None:
        """Raise `Unsigned` unless there is one of each header, they prove a body that comes in, and the time is now."""
        if len(timestamps) != 1 or not (seconds := _SECONDS.fullmatch(timestamps[0])):
            raise Unsigned(f"Send one {TIMESTAMP}: whole unix seconds.")
        shown = _read(signatures)
        missing = [version for version in self.versions if version not in shown]
        # Whoever names account and direction has proved more than was asked for.
        if not shown or (missing and "v2" not in shown):
            raise Unsigned(f"Send one {SIGNATURE}: {_HOW[(missing or ['v1'])[0]]}.")
        if not any(self._fits(secret, shown, seconds[0], body) for secret in self.secrets):
            raise Unsigned(
                "The signature doesn't fit: sign the timestamp as sent and the raw body with this account's secret."
            )
        if abs(now - int(seconds[0])) > WINDOW:
            raise Unsigned(
                f"The timestamp is more than {WINDOW} seconds away from the clock here: sign anew, and set your clock."
            )

    def prove_file(self, where: str) -> str:
        """Return the proof that a file was offered to this account."""
        return self._of_file(self.secrets[0], where)

    def offered(self, where: str, proof: str) -> bool:
        """Return whether a file was offered to this account, by the proof that its address had."""
        shown = proof.encode()
        return any(hmac.compare_digest(self._of_file(secret, where).encode(), shown) for secret in self.secrets)

    def _of_file(self, secret: Secret, where: str) -> str:
        return hmac.digest(secret.reveal().encode(), f"file.{self.account}.{where}".encode(), "sha256").hex()

    def _fits(self, secret: Secret, shown: dict[str, bytes], timestamp: str, body: bytes) -> bool:
        return all(
            hmac.compare_digest(self._digest(secret, version, "in", timestamp, body), proof)
            for version, proof in shown.items()
        )

    def _digest(self, secret: Secret, version: str, way: str, timestamp: str, body: bytes) -> bytes:
        named = f"v2.{way}.{self.account}." if version == "v2" else ""
        return hmac.digest(secret.reveal().encode(), f"{named}{timestamp}.".encode() + body, "sha256")


_HOW = {
    "v1": 'v1=<hex HMAC-SHA256 of "{timestamp}.{raw body}">',
    "v2": 'v2=<hex HMAC-SHA256 of "v2.in.{account}.{timestamp}.{raw body}">',
}


def _read(signatures: Sequence[str]) -> dict[str, bytes]:
    """The signatures in the one header that there may be, each version once; none if it isn't so."""
    found: dict[str, bytes] = {}
    for part in signatures[0].split(",") if len(signatures) == 1 else ():
        signed = _SIGNED.fullmatch(part.strip(" "))
        if signed is None or signed[1] in found:
            return {}
        found[signed[1]] = bytes.fromhex(signed[2])
    return found
