"""People: what somebody may do, and the codes that prove who they are."""

import hashlib
import hmac
from enum import StrEnum

from segue.core.text.normal import normal
from segue.core.values import PersonId, Value
from segue.errors import Refusal, Refused


class Standing(StrEnum):
    """What a person is to a lane and the session that it speaks to."""

    HOST = "host"
    """The one person who runs this Segue."""
    OWNER = "owner"
    """The person whom the session belongs to."""
    PARTICIPANT = "participant"
    """Somebody who may speak here."""
    STRANGER = "stranger"
    """Somebody who may not."""


class Facts(Value, frozen=True):
    """What decides a person's standing in a lane."""

    person: PersonId
    host: bool = False
    known: bool = False
    """The host let them in: by name, by a grant, or by letting everybody in."""
    owner: PersonId | None = None
    """Whom the session belongs to that the lane speaks to; None if it speaks to none."""


def standing_of(facts: Facts) -> Standing:
    """What a person is to a lane and its session; where there is none, they would own the one that they begin."""
    if facts.host:
        return Standing.HOST
    if not facts.known:
        return Standing.STRANGER
    return Standing.OWNER if facts.owner in (None, facts.person) else Standing.PARTICIPANT


HOST_ONLY = frozenset({Standing.HOST})
OWNERS = HOST_ONLY | {Standing.OWNER}
PEOPLE = OWNERS | {Standing.PARTICIPANT}
"""Everybody who may speak somewhere."""
ANYBODY = PEOPLE | {Standing.STRANGER}


def authorize(standing: Standing, may: frozenset[Standing]) -> None:
    """Raise `Refused` unless somebody of this standing is among those who may."""
    if standing not in may:
        raise Refused(Refusal.NOT_ALLOWED)


ALPHABET = "234679CDFGHJKMNPQRTVWXY"
"""Neither 0 and O, 1, I and L, 2 and Z, 5 and S, 8 and B, U and V, nor vowels that could make a word."""
LENGTH = 8
_LOOKED_AT = 8 * LENGTH
RANDOMNESS = 16
"""Bytes that a code is made of: so many more than it holds that every code is as likely as any other."""


def make_code(randomness: bytes) -> str:
    """A code as it is shown: `CDFG-HJ34`."""
    if len(randomness) != RANDOMNESS:
        raise ValueError(f"a code needs {RANDOMNESS} random bytes")
    number, letters = int.from_bytes(randomness), ""
    for _ in range(LENGTH):
        number, letter = divmod(number, len(ALPHABET))
        letters += ALPHABET[letter]
    return f"{letters[:4]}-{letters[4:]}"


def read_code(typed: str) -> str:
    """A code as it counts: however it was grouped, and in whichever case."""
    return "".join(c for c in normal(typed, _LOOKED_AT).upper() if c.isalnum())


def digest(secret: bytes, typed: str) -> str:
    """What the store keeps of a code: nobody can tell the code from it, or look for one, without the secret."""
    return hmac.new(secret, read_code(typed).encode("utf-8", "replace"), hashlib.sha256).hexdigest()
