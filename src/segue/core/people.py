"""People: what somebody may do, the codes that prove who they are, and how much one person may have."""

import hashlib
import hmac
from enum import Enum, StrEnum
from typing import Annotated

from msgspec import Meta

from segue.core.text.normal import normal
from segue.core.values import Count, Moment, PersonId, Seconds, Value
from segue.errors import Refusal, Refused


class Standing(StrEnum):
    """Relations of a person to a lane and the session that it speaks to."""

    HOST = "host"
    """The one person who runs this Segue."""
    OWNER = "owner"
    """The person whom the session belongs to."""
    PARTICIPANT = "participant"
    """Somebody who may speak here."""
    STRANGER = "stranger"
    """Somebody who may not."""


class Facts(Value, frozen=True):
    """Facts that decide a person's standing in a lane."""

    person: PersonId
    host: bool = False
    known: bool = False
    """The host let them in: by name, by a grant, or by letting everybody in."""
    owner: PersonId | None = None
    """Whom the session belongs to that the lane speaks to; None if it speaks to none."""


def standing_of(facts: Facts) -> Standing:
    """The standing of a person; where a lane has no session, they would own the one that they begin."""
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


def authorize(standing: Standing, may: frozenset[Standing], *, offered: bool = True) -> None:
    """Raise `Refused` unless somebody of this standing is among those who may, and it is offered to them there."""
    if standing not in may or not offered:
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
    """The digest of a code for the store: nobody can tell the code from it, or look for one, without the secret."""
    return hmac.new(secret, read_code(typed).encode("utf-8", "replace"), hashlib.sha256).hexdigest()


MINUTE, DAY = 60.0, 86400.0


class Allowance(Value, frozen=True):
    """How much of each thing one person may have."""

    messages_a_minute: Count = 60
    waiting: Count = 50
    """Messages that nobody has answered yet."""
    open_sessions: Count = 1000
    """Over it, the longest unused is closed."""
    bytes: Annotated[int, Meta(ge=1_000, le=10**15)] = 1_000_000_000
    """All that is kept of their words and files."""
    schedules: Annotated[int, Meta(ge=0, le=1_000_000)] = 100
    """Pieces of scheduled work to come."""
    schedule_every: Seconds = 60.0
    """Seconds between two times at which one of them is due."""
    questions: Count = 20
    """Questions to them that are open."""
    windows: Count = 20
    """Windows that show their sessions."""


STRANGERS = Allowance(
    messages_a_minute=20,
    waiting=5,
    open_sessions=20,
    bytes=20_000_000,
    schedules=3,
    schedule_every=900.0,
    questions=3,
    windows=2,
)
EVER = 2**62
"""More than anybody has of anything."""


class Allowances(Value, frozen=True):
    """The allowance of a person, and of a stranger, who talks only because an account is public."""

    person: Allowance = Allowance()
    stranger: Allowance = STRANGERS
    account_day: int = 200_000_000
    """Bytes that all strangers of one account together may have kept in a day."""

    @property
    def host(self) -> Allowance:
        """The host's: bounded in bytes alone."""
        most = EVER
        return Allowance(most, most, most, self.person.bytes, most, 0.0, most, most)


_ALL = Allowance(EVER, EVER, EVER, EVER, EVER, 0.0)
UNBOUNDED = Allowances(_ALL, _ALL, EVER)
"""No limits, for a gateway that nobody but its host reaches."""


class PersonTally(Value, frozen=True):
    """Counts of a person."""

    since: Moment = 0.0
    """When the minute began in which their messages are counted."""
    messages: int = 0
    waiting: int = 0
    bytes: int = 0


class Limit(Enum):
    """A limit that a message can be over; the value is the sentence its person reads."""

    MESSAGES = "That was more than I take from one person in a minute, and I left it out. Send it again in a minute."
    WAITING = "As many of your messages wait as I keep, so I left that one out. Send it again when some are answered."
    ACCOUNT = "Strangers sent as much here today as I keep, so I left that out. Send it again tomorrow."
    BYTES = "I keep as much of yours as I may, so I left that out. Take something back with /forget first."


def over(tally: PersonTally, allowance: Allowance, size: int, at: Moment) -> Limit | None:
    """The limit that one more message, of so many bytes, would be over."""
    # A clock that went back begins another minute.
    if tally.since <= at < tally.since + MINUTE and tally.messages >= allowance.messages_a_minute:
        return Limit.MESSAGES
    if tally.waiting >= allowance.waiting:
        return Limit.WAITING
    if tally.bytes + size > allowance.bytes:
        return Limit.BYTES
    return None
