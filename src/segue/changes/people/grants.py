"""Grants: who may speak where, and who the host is.

Law: a grant is a fact with since, until, why and by whom. Who was merged into somebody brings their grants along.
"""

from collections.abc import Sequence
from enum import StrEnum

from segue.changes import audit
from segue.changes.audit import Event, Fact
from segue.changes.people import actors, persons, tokens
from segue.changes.people.persons import Known
from segue.changes.rows import each, first, one
from segue.core.contracts.database import Transaction
from segue.core.contracts.wakes import Topic, Wake
from segue.core.lanes import Identity, Kind, Lane
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q
from segue.database.transactions import Moved


class Scope(StrEnum):
    """The places that a grant is for."""

    DM = "dm"
    """Private chats."""
    GROUP = "group"
    """Wherever several people talk."""


def scope_of(kind: Kind) -> Scope:
    """Which grants count in such a place."""
    return Scope.DM if kind is Kind.DM else Scope.GROUP


class Footing(Value, frozen=True):
    """Facts in the store about a person in a lane."""

    host: bool
    granted: bool
    owner: PersonId | None
    """Whom the lane's session belongs to."""


class Grant(Value, frozen=True):
    """A fact: this person may speak in such places of an account."""

    account: str
    person: PersonId
    scope: Scope
    since: Moment
    why: str
    by: PersonId


def footing(person: PersonId, host: str, account: str, scope: Scope, lane: Lane) -> Transaction[Footing]:
    """Whether a person is the host, was let in, and whom the lane's session belongs to."""
    return (yield from one(Footing, q.footing(person=person, host=host, account=account, place=scope, lane=lane.key)))


def grant(account: str, person: PersonId, scope: Scope, why: str, by: PersonId, at: Moment) -> Transaction[bool]:
    """Let a person speak in such places, and whoever they are merged into; returns whether that is new."""
    yield from actors.hold(person)
    if not (yield q.add_grant(account=account, person=person, place=scope, why=why, by=by, at=at)):
        return False
    yield from audit.note(Fact(Event.LET_IN, person, by, account, detail=f"{scope}, {why}"), at)
    return True


def revoke(account: str, person: PersonId, scope: Scope, by: PersonId, at: Moment) -> Transaction[bool]:
    """Let a person speak there no more; returns whether they might."""
    person = yield from actors.hold(person)
    if not (yield q.end_grants(account=account, person=person, place=scope, at=at)):
        return False
    yield from audit.note(Fact(Event.REVOKED, person, by, account, detail=scope), at)
    return True


def of(person: PersonId) -> Transaction[list[Grant]]:
    """The grants that a person has, oldest first; whoever they were before counts too."""
    return (yield from each(Grant, q.grants_of_person(person=(yield from actors.now(person)))))


def everyones() -> Transaction[list[Grant]]:
    """Every grant that holds, oldest first."""
    return (yield from each(Grant, q.everyones_grants()))


def described(person: PersonId) -> Transaction[str]:
    """A person with the grants that they have."""
    person = yield from actors.now(person)
    held = yield from of(person)
    ways = "; ".join(f"{grant.account.replace('/', '.')} {grant.scope}, by {grant.why}" for grant in held)
    return f"{yield from persons.described(person)}: {ways}"


def revoke_all(person: PersonId, by: PersonId, at: Moment) -> Transaction[list[Grant]]:
    """End every grant and every token that a person has; returns the grants."""
    yield from tokens.revoke_all(person, by, at)
    ended = yield from of(person)
    for account, scope in dict.fromkeys((held.account, held.scope) for held in ended):
        yield from revoke(account, person, scope, by, at)
    return ended


def block(person: PersonId, by: PersonId, at: Moment) -> Transaction[bool]:
    """Let a person talk nowhere, whatever else lets them in; returns whether that is new.

    Their running turns stop, and what they have waiting is withdrawn.
    """
    person = yield from actors.hold(person)
    if not (yield q.add_block(person=person, by=by, at=at)):
        return False
    yield from _end_turns(person, at)
    yield from audit.note(Fact(Event.BLOCKED, person, by), at)
    return True


def _end_turns(person: PersonId, at: Moment) -> Transaction[None]:
    """Stop the running turns of a person, and withdraw those that wait; whoever they were before counts too."""
    for known_as in (yield from each(PersonId, q.everyone_in(person=person))):
        for session in sorted((yield from each(SessionId, q.sessions_awaited_by(person=known_as)))):
            yield q.lock_session(session=session)
            yield q.withdraw_turns_of(session=session, person=known_as, at=at)
            yield q.stop_turns(session=session, person=known_as)
            yield Wake(Topic.LOOK, session)


def unblock(person: PersonId, by: PersonId, at: Moment) -> Transaction[bool]:
    """Let a person talk again where something lets them in; returns whether they might not."""
    person = yield from actors.hold(person)
    if not (yield q.end_block(person=person, at=at)):
        return False
    yield from audit.note(Fact(Event.UNBLOCKED, person, by), at)
    return True


def unite(hosts: Sequence[Identity], merges: Sequence[str], at: Moment) -> Transaction[PersonId | None]:
    """Make all who speak for the host one person, and tell who; needs an id for each merge: one less than hosts."""
    known = {}
    for identity in hosts:
        found = yield from first(Known, q.identity(key=identity.key))
        if found is not None:
            known[found.person.id] = found.person
    if not known:
        return None
    oldest, *others = sorted(known.values(), key=lambda person: (person.since, person.id))
    for other, merge in zip(others, merges[: len(others)], strict=True):
        yield from persons.join(oldest.id, other.id, "host", oldest.id, merge, at)
        yield from audit.note(Fact(Event.HOST, oldest.id, detail="settings"), at)
    yield from attach(hosts, oldest.id, at)
    return oldest.id


def attach(hosts: Sequence[Identity], host: PersonId, at: Moment) -> Transaction[None]:
    """Every identity of the host's that nobody has spoken by yet is the host, too."""
    if (yield from actors.hold(host)) != host:
        raise Moved
    for identity in sorted(hosts):
        if (yield q.add_identity(key=identity.key, person=host, at=at)):
            yield from audit.note(Fact(Event.HOST, host, identity=identity.key, detail="settings"), at)
        found = yield from first(Known, q.identity(key=identity.key))
        if found is None or found.person.id != host:
            raise Moved
