"""Grants: who may speak where, and who the host is.

Law: a grant is a fact with since, until, why and by whom. Who was merged into somebody brings their grants along.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from segue.changes.people import actors, persons
from segue.changes.sessions.rows import person_of
from segue.core.contracts.database import Transaction
from segue.core.lanes import Identity, Kind, Lane
from segue.core.values import Moment, PersonId, Value
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
    """What the store knows about a person in a lane."""

    host: bool
    granted: bool
    owner: PersonId | None
    """Whom the lane's session belongs to."""


class Grant(Value, frozen=True):
    """A fact: this person may speak in such places of an account."""

    person: PersonId
    scope: Scope
    since: Moment
    why: str
    by: PersonId


def footing(person: PersonId, host: str, account: str, scope: Scope, lane: Lane) -> Transaction[Footing]:
    """Whether a person is the host, was let in, and whom the lane's session belongs to."""
    rows = yield q.footing(person=person, host=host, account=account, place=scope, lane=lane.key)
    is_host, granted, owner = rows[0]
    return Footing(bool(is_host), bool(granted), owner)


def grant(account: str, person: PersonId, scope: Scope, why: str, by: PersonId, at: Moment) -> Transaction[bool]:
    """Let a person speak in such places, and whoever they are merged into; returns whether that is new."""
    yield from actors.hold(person)
    return bool((yield q.add_grant(account=account, person=person, place=scope, why=why, by=by, at=at)))


def revoke(account: str, person: PersonId, scope: Scope, at: Moment) -> Transaction[bool]:
    """Let a person speak there no more; returns whether they might."""
    person = yield from actors.hold(person)
    return bool((yield q.end_grants(account=account, person=person, place=scope, at=at)))


def grants(account: str) -> Transaction[list[Grant]]:
    """Who may speak on an account by a grant, oldest first."""
    rows = yield q.grants_of_account(account=account)
    return [Grant(person, Scope(place), since, why, by) for person, place, since, why, by in rows]


def unite(hosts: Sequence[Identity], merges: Sequence[str], at: Moment) -> Transaction[None]:
    """Make all who speak for the host one person; needs an id for each merge there may be, one less than hosts."""
    known = {}
    for identity in hosts:
        rows = yield q.identity(key=identity.key)
        if rows:
            known[rows[0][0]] = person_of(rows[0])
    if not known:
        return
    first, *others = sorted(known.values(), key=lambda person: (person.since, person.id))
    for other, merge in zip(others, merges[: len(others)], strict=True):
        yield from persons.join(first.id, other.id, "host", first.id, merge, at)
    yield from attach(hosts, first.id, at)


def attach(hosts: Sequence[Identity], host: PersonId, at: Moment) -> Transaction[None]:
    """Every identity of the host's that nobody has spoken by yet is the host, too."""
    if (yield from actors.hold(host)) != host:
        raise Moved
    for identity in sorted(hosts):
        yield q.add_identity(key=identity.key, person=host, at=at)
        rows = yield q.identity(key=identity.key)
        if not rows or rows[0][0] != host:
            raise Moved
