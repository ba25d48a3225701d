"""Grants: who may speak where, and who the host is.

Law: a grant is a fact with since, until, why and by whom. Who was merged into somebody brings their grants along.
"""

from collections.abc import Sequence
from enum import StrEnum

from segue.changes import audit
from segue.changes.audit import Event, Fact
from segue.changes.people import actors, persons, tokens
from segue.changes.people.persons import Known
from segue.changes.people.tokens import Still
from segue.changes.rows import each, first, one
from segue.core.contracts.database import Transaction
from segue.core.contracts.wakes import Topic, Wake
from segue.core.lanes import Address, Identity, Kind, Lane, Place
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q
from segue.database.transactions import Moved
from segue.errors import Refusal, Refused


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


def revoke_all(person: PersonId, by: PersonId, still: Still, at: Moment) -> Transaction[list[Grant]]:
    """End every grant and every token that a person has; returns the grants.

    Where they may talk no more, their running turns stop, and what they have waiting is withdrawn.
    """
    yield from tokens.revoke_all(person, by, at)
    ended = yield from of(person)
    for account, scope in dict.fromkeys((held.account, held.scope) for held in ended):
        yield from revoke(account, person, scope, by, at)
    yield from end_turns((yield from actors.hold(person)), still, at)
    return ended


def block(person: PersonId, by: PersonId, at: Moment) -> Transaction[bool]:
    """Let a person talk nowhere, whatever else lets them in; returns whether that is new.

    Their running turns stop, and what they have waiting is withdrawn.
    """
    person = yield from actors.hold(person)
    if not (yield q.add_block(person=person, by=by, at=at)):
        return False
    yield from end_turns(person, _nowhere, at)
    yield from audit.note(Fact(Event.BLOCKED, person, by), at)
    return True


class UnfinishedTurn(Value, frozen=True):
    """A turn that runs or waits."""

    session: SessionId
    seq: int
    spoken: bool
    """Whether its person typed it."""
    person: PersonId


def may_go_on(turn: UnfinishedTurn, still: Still) -> Transaction[bool]:
    """Whether the person of a turn may still talk where it was asked for.

    What nobody typed there, such as the first words after a handoff, is theirs as long as they may talk in some way.
    """
    asked = yield from first(str, q.asked_at(session=turn.session, turn=turn.seq))
    if asked is None:
        asked = yield from first(str, q.origin_of_turn(session=turn.session, turn=turn.seq))
    place = None
    if asked is not None:
        place = (yield from first(Place, q.address(address=asked))) or Place(Address.parse(asked))
    if (yield from still(turn.person, place)):
        return True
    return not turn.spoken and place is not None and (yield from still(turn.person, None))


def check_turn(session: SessionId, seq: int, still: Still) -> Transaction[None]:
    """Raise `Refused` if the person of a turn that runs may talk no more where it was asked for."""
    turn = yield from one(UnfinishedTurn, q.unfinished_turn(session=session, turn=seq))
    if not (yield from may_go_on(turn, still)):
        raise Refused(Refusal.NOT_ALLOWED)


def astray(still: Still) -> Transaction[list[PersonId]]:
    """The people of turns that run or wait though they may talk there no more, such as since the settings changed."""
    found: dict[PersonId, None] = {}
    for turn in (yield from each(UnfinishedTurn, q.unfinished_turns())):
        if turn.person not in found and not (yield from may_go_on(turn, still)):
            found[turn.person] = None
    return list(found)


def end_turns(person: PersonId, still: Still, at: Moment) -> Transaction[None]:
    """Stop the running turns of a person where they may talk no more, and withdraw those that wait there.

    Whoever they were before counts too.
    """
    for known_as in (yield from each(PersonId, q.everyone_in(person=person))):
        for session in sorted((yield from each(SessionId, q.sessions_awaited_by(person=known_as)))):
            yield q.lock_session(session=session)
            for turn in (yield from each(UnfinishedTurn, q.unfinished_turns_of(session=session, person=known_as))):
                if (yield from may_go_on(turn, still)):
                    continue
                if not (yield q.withdraw_turn(session=session, turn=turn.seq, at=at)):
                    yield q.stop_turn(session=session, turn=turn.seq)
            yield Wake(Topic.LOOK, session)


def _nowhere(_person: PersonId, _place: Place | None) -> Transaction[bool]:
    yield from ()
    return False


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
