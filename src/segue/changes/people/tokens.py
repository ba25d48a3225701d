"""Tokens of people: each lets a program act for its person in one way, until it ends or is revoked.

Law: only a digest is kept, so a token is shown once. A token counts while it hasn't ended, wasn't revoked, and its
person may talk in some way; whom its person was merged into has it, too.
"""

from collections.abc import Callable
from enum import StrEnum
from hashlib import sha256

from segue.changes import audit
from segue.changes.audit import Event, Fact
from segue.changes.people import actors
from segue.changes.rows import each, first, one
from segue.core.contracts.database import Transaction
from segue.core.lanes import Person, Place
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q
from segue.errors import Invalid, Refusal, Refused

PREFIX = "segue_"
"""Beginning of every token, by which people and scanners for secrets know one."""
Still = Callable[[PersonId, Place | None], Transaction[bool]]
"""Whether somebody may talk in a place as things stand now; in some way at all, if it is None."""
_KEPT = 30 * 86400.0
"""Seconds for which a token that counts no more is listed."""
_HOUR = 3600.0


class TokenScope(StrEnum):
    """The way in which a token lets a program act for its person."""

    MCP = "mcp"
    """By the tools at `/mcp`."""
    ACP = "acp"
    """As an editor, at `/acp`."""
    API = "api"
    """By calls of `/api/v1`."""


class Token(Value, frozen=True):
    """A token as its host sees it."""

    id: str
    person: PersonId
    scope: TokenScope
    session: SessionId | None
    """The one session that it is for; None for all of its person's."""
    name: str
    """The program that it was made for, in the host's words."""
    made: Moment
    ends: Moment
    used: Moment | None
    """When it was last used, to the hour."""
    revoked: Moment | None

    def counts(self, at: Moment) -> bool:
        """Whether it neither ended nor was revoked."""
        return self.revoked is None and at < self.ends


class Bearer(Value, frozen=True):
    """Whoever shows a token that counts: the person for whom it acts, and what it reaches."""

    person: Person
    token: Token

    def stale(self, at: Moment) -> bool:
        """Whether the use that is kept is from too long ago."""
        return self.token.used is None or at - self.token.used >= _HOUR


def digest(token: str) -> str:
    """The form in which a token is kept; it is random and long, so nobody can look for one."""
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def create(token: Token, digest: str, by: PersonId, at: Moment) -> Transaction[Token]:
    """Give a person a token."""
    person = yield from actors.hold(token.person)
    yield q.add_token(
        id=token.id,
        digest=digest,
        person=person,
        scope=token.scope,
        session=token.session,
        name=token.name,
        at=token.made,
        ends=token.ends,
    )
    yield from audit.note(Fact(Event.BEARER, person, by, detail=f"{token.id}, {token.scope}"), at)
    return (yield from one(Token, q.token(id=token.id)))


def person_of(shown: str, scope: TokenScope, still: Still, at: Moment) -> Transaction[Bearer | Refusal]:
    """The person for whom a token acts, or why it doesn't count for this."""
    return (yield from _bearer((yield from first(Token, q.token_shown(digest=digest(shown)))), scope, still, at))


def check(id: str, still: Still, at: Moment) -> Transaction[None]:
    """Raise `Refused` if a token, which a call showed when it began, counts no more."""
    found = yield from first(Token, q.token(id=id))
    bearer = yield from _bearer(found, found.scope if found else TokenScope.MCP, still, at)
    if isinstance(bearer, Refusal):
        raise Refused(bearer)


def _bearer(found: Token | None, scope: TokenScope, still: Still, at: Moment) -> Transaction[Bearer | Refusal]:
    if found is None:
        return Refusal.BEARER_UNKNOWN
    person = yield from actors.now(found.person)
    if found.revoked is not None:
        return Refusal.BEARER_REVOKED
    if not found.counts(at):
        return Refusal.BEARER_ENDED
    if found.scope is not scope:
        return Refusal.BEARER_ELSEWHERE
    if not (yield from still(person, None)):
        return Refusal.BEARER_BLOCKED
    return Bearer((yield from one(Person, q.person(person=person))), found)


def use(token: str, at: Moment) -> Transaction[None]:
    """A token was used."""
    yield q.use_token(id=token, at=at)


def refuse(shown: str, scope: TokenScope, why: Refusal, at: Moment) -> Transaction[None]:
    """Write down that a token was refused; the same one again is counted."""
    found = yield from first(Token, q.token_shown(digest=digest(shown)))
    person = (yield from actors.now(found.person)) if found else ""
    which = f"token {found.id} for {scope}" if found else f"token for {scope}"
    yield from audit.note(Fact(Event.REFUSED, person, detail=f"{which}: {why.name.lower().partition('_')[2]}"), at)


def listed() -> Transaction[list[Token]]:
    """Every token of everybody, the newest first."""
    return (yield from each(Token, q.tokens()))


def of(person: PersonId) -> Transaction[list[Token]]:
    """The tokens of a person, the newest first."""
    return (yield from each(Token, q.tokens_of(person=(yield from actors.now(person)))))


def revoke(id: str, by: PersonId, at: Moment) -> Transaction[Token]:
    """A token counts no more."""
    found = yield from first(Token, q.token(id=id))
    if found is None:
        raise Invalid("token", f'none goes by "{id}"', "`segue tokens list` shows their ids.")
    if (yield q.revoke_token(id=id, at=at)):
        yield from audit.note(Fact(Event.REVOKED, found.person, by, detail=f"token {id}, {found.scope}"), at)
    return (yield from one(Token, q.token(id=id)))


def revoke_all(person: PersonId | None, by: PersonId, at: Moment) -> Transaction[list[Token]]:
    """No token of a person, or of anybody, counts any more; returns those that did."""
    found = (yield from listed()) if person is None else (yield from of(person))
    ended = [token for token in found if token.counts(at)]
    for token in ended:
        yield from revoke(token.id, by, at)
    return ended


def forget_person(person: PersonId, by: PersonId, at: Moment) -> Transaction[None]:
    """A person is forgotten: their tokens count no more, and nothing says what they were for."""
    yield from revoke_all(person, by, at)
    for token in (yield from of(person)):
        yield q.forget_token_name(id=token.id)


def forget(at: Moment) -> Transaction[None]:
    """Forget tokens that count no more since a while."""
    yield q.forget_tokens(before=at - _KEPT)
