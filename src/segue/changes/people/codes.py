"""One-time codes, by which somebody is let in or joined.

Law: codes are made and used one at a time, so that no limit can be passed by asking twice at once.
"""

from enum import StrEnum

from msgspec.structs import replace

from segue.changes import settings
from segue.changes.people import actors
from segue.changes.people.grants import Scope, grant
from segue.changes.rows import first, one
from segue.core.contracts.database import Transaction
from segue.core.lanes import Lane, Person, account_key
from segue.core.people import digest
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q
from segue.database.transactions import Moved
from segue.errors import Refusal

KEY = "codes.secret"
"""Name of the secret that digests are made with."""
_DAY = 86400.0
_PAIRING_PAUSE = 600.0
_PAIRING_MOST = 3
"""Codes of strangers that work at once on an account."""
_TRIES = 5
_TRIES_WITHIN = 600.0


class CodeKind(StrEnum):
    """Uses of a code."""

    PAIRING = "pairing"
    """The host types it: the stranger who was given it may speak in private."""
    LINK = "link"
    """Whoever types it and says yes is the person who was given it."""
    HANDOFF = "handoff"
    """The same, and the conversation in which it was given comes to where it is typed."""


LIFETIME = {CodeKind.PAIRING: 3600.0, CodeKind.LINK: 600.0, CodeKind.HANDOFF: 600.0}
"""Seconds for which a code works."""


class Code(Value, frozen=True):
    """A code that works: who was given it, where, and what it carries."""

    digest: str
    kind: CodeKind
    account: str
    person: PersonId
    carried: str
    """A stranger's address; else the key of the lane where the code was given, and the session to bring."""

    @property
    def body(self) -> str:
        """The stranger's address, or the session to bring."""
        return self.carried.partition(" ")[0] if self.kind is not CodeKind.PAIRING else self.carried

    @property
    def lane(self) -> Lane:
        """The lane in which it was given."""
        return Lane.parse(self.carried.partition(" ")[2])


def offer_pairing(
    person: PersonId, account: str, address: str, code: str, secret: str, at: Moment
) -> Transaction[bool]:
    """Give a stranger a code, unless they were given one just now; if many others hold one, the oldest is displaced."""
    key = yield from _hold_codes(secret)
    kind = CodeKind.PAIRING
    since = at - _PAIRING_PAUSE
    asked = yield from one(int, q.codes_made_since(kind=kind, account=account, person=person, since=since))
    if asked:
        return False
    others = yield from one(int, q.codes_of_others(kind=kind, account=account, person=person, at=at))
    if others >= _PAIRING_MOST:
        yield q.end_oldest_code(kind=kind, account=account, at=at)
    yield from _keep(Code(digest(key, code), kind, account, person, address), at)
    return True


def give_link(person: PersonId, lane: Lane, code: str, secret: str, at: Moment) -> Transaction[None]:
    """Give a person a code to join another identity with; the one that they were given here before works no more."""
    key = yield from _hold_codes(secret)
    account = account_key(lane.address.platform, lane.address.account)
    yield from _keep(Code(digest(key, code), CodeKind.LINK, account, person, f" {lane.key}"), at)


def give_handoff(
    person: PersonId, lane: Lane, session: SessionId, code: str, secret: str, at: Moment
) -> Transaction[None]:
    """Give a person a code that brings a conversation to where they type it."""
    key = yield from _hold_codes(secret)
    account = account_key(lane.address.platform, lane.address.account)
    yield from _keep(Code(digest(key, code), CodeKind.HANDOFF, account, person, f"{session} {lane.key}"), at)


def find_code(typed: str, by: PersonId, secret: str, at: Moment) -> Transaction[Code | Refusal]:
    """The code that somebody typed, if it works and they haven't guessed too often.

    A refusal is returned and not raised: the try must be kept.
    """
    key = yield from _hold_codes(secret)
    tries = yield from one(int, q.tries_since(person=by, since=at - _TRIES_WITHIN))
    if tries >= _TRIES:
        return Refusal.TOO_MANY_TRIES
    code = yield from first(Code, q.code(digest=digest(key, typed), at=at))
    if code is None:
        return (yield from wrong_code(by, at))
    return replace(code, person=(yield from actors.now(code.person)))


def spoil(typed: str, secret: str, at: Moment) -> Transaction[None]:
    """Somebody who may not talk showed a code to others: it works no more."""
    key = yield from _hold_codes(secret)
    yield q.use_code(digest=digest(key, typed), at=at)


def wrong_code(by: PersonId, at: Moment) -> Transaction[Refusal]:
    """Keep the try of a code that doesn't work, or not for this person: both read the same."""
    yield q.add_try(person=by, at=at)
    return Refusal.WRONG_CODE


def use_code(code: Code, at: Moment) -> Transaction[None]:
    """A code works once."""
    if not (yield q.use_code(digest=code.digest, at=at)):
        raise Moved


def pair(code: Code, by: PersonId, at: Moment) -> Transaction[Person]:
    """Let the stranger who was given a code talk in private; returns who that is."""
    yield from use_code(code, at)
    yield from grant(code.account, code.person, Scope.DM, "pairing", by, at)
    return (yield from one(Person, q.person(person=code.person)))


def forget(at: Moment) -> Transaction[None]:
    """Forget codes and tries that decide nothing any more."""
    yield q.forget_codes(before=at - _DAY)
    yield q.forget_tries(before=at - _DAY)


def _keep(code: Code, at: Moment) -> Transaction[None]:
    yield q.end_codes(kind=code.kind, account=code.account, person=code.person, at=at)
    yield q.add_code(
        digest=code.digest,
        kind=code.kind,
        account=code.account,
        person=code.person,
        body=code.carried,
        at=at,
        expires=at + LIFETIME[code.kind],
    )


def _hold_codes(fresh: str) -> Transaction[bytes]:
    """Let nobody else make or use codes meanwhile; returns what their digests are made with, kept at the first use."""
    yield q.hold_name(name="codes")
    return bytes.fromhex((yield from settings.once(KEY, fresh)))
