"""Persons: who an identity is, and what becomes of everything when two persons turn out to be one."""

from __future__ import annotations

from segue.core.contracts import Transaction
from segue.core.lanes import Address, Identity, Lane, Person, clean_name
from segue.core.messages import Speaker
from segue.core.moves import Why
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.errors import Invalid
from segue.store import moves, titles
from segue.store.rows import person_of
from segue.store.statements import q
from segue.store.transactions import Moved


class Met(Value, frozen=True):
    """Who spoke, and whether it is the first time ever."""

    person: Person
    new: bool = False


class Merge(Value, frozen=True):
    """A fact: these two persons are one."""

    id: str
    kept: PersonId
    gone: PersonId
    since: Moment


def meet(speaker: Speaker, new: PersonId, merge_ids: tuple[str, ...], at: Moment) -> Transaction[Met]:
    """Who this is; a new person if nobody knows them, a merge if two of their ids were two persons so far."""
    platform, account = speaker.identity.platform, speaker.identity.account
    users = dict.fromkeys((speaker.identity.user, *speaker.aliases))
    keys = [Identity(platform, account, user).key for user in users]
    name = clean_name(speaker.name)
    known: dict[str, Person] = {}
    unknown: list[str] = []
    for key in keys:
        rows = yield q.identity(key=key)
        if rows:
            known[rows[0][0]] = person_of(rows[0])
        else:
            unknown.append(key)
    first_time = not known
    if first_time:
        yield q.add_person(person=new, name=name, at=at)
        known[new] = Person(new, name, at)
    person, *others = sorted(known.values(), key=lambda p: (p.since, p.id))
    for other, merge in zip(others, merge_ids, strict=False):
        yield from join(person.id, other.id, "alias", person.id, merge, at)
    for key in unknown:
        if not (yield q.add_identity(key=key, person=person.id, at=at)):
            raise Moved
    if name and name != person.name:
        yield q.rename_person(person=person.id, name=name)
        person = Person(person.id, name, person.since)
    return Met(person, first_time)


def join(one: PersonId, two: PersonId, why: str, by: PersonId, id: str, at: Moment) -> Transaction[Merge]:
    """Two persons are one: the older stays, with all that both had."""
    rows = yield q.lock_persons(one=one, two=two)
    if len(rows) != 2:
        raise Invalid("person", "a merge needs two persons that exist", "Check both ids with `/who`.")
    kept, gone = PersonId(rows[0][0]), PersonId(rows[1][0])
    lanes_kept = yield q.lanes_of_person(person=kept)
    lanes_gone = yield q.lanes_of_person(person=gone)
    yield q.add_merge(merge=id, kept=kept, gone=gone, why=why, by=by, at=at)
    yield q.move_identities(kept=kept, gone=gone)
    yield q.move_sessions(kept=kept, gone=gone)
    owned = yield q.titles_owned(owner=gone)
    for session, name, number in owned:
        yield from titles.take(session, kept, name, at, number)
    stays = {address: (session, used) for _, address, session, used in lanes_kept}
    yield q.add_move(move=id, kind="merge", lane=None, session=None, by=by, at=at)
    for key, address, session, used in lanes_gone:
        if session is None:
            continue
        yield from moves.bind(Lane.parse(key), None, Why.MERGED, by, id, at)
        there, last = stays.get(address, (None, 0.0))
        if there is not None and last >= used:
            continue
        lane = Lane(Address.parse(address), kept)
        yield q.see_lane(lane=lane.key, address=address, person=kept, at=at)
        yield from moves.bind(lane, SessionId(session), Why.MERGED, by, id, at)
    return Merge(id, kept, gone, at)


def part(merge: str, by: PersonId, id: str, at: Moment) -> Transaction[None]:
    """A merge was wrong: what each of the two began is theirs again, and lanes that didn't move since go back."""
    rows = yield q.merge(merge=merge)
    if not rows:
        raise Invalid("merge", f"{merge!r} doesn't hold", "List the merges that do with `store.merges(person)`.")
    kept, gone, _ = rows[0]
    yield q.lock_persons(one=kept, two=gone)
    yield q.end_merge(merge=merge, at=at)
    inside = yield q.everyone_in(person=gone)
    for (first,) in inside:
        keys = yield q.identities_from(person=kept, first=first)
        for (key,) in keys:
            yield q.move_identity(key=key, person=gone)
        yield q.move_sessions_back(gone=gone, kept=kept, first=first)
    titled = yield q.titles_owned(owner=kept)
    for session, name, _ in titled:
        [row] = yield q.session(session=session)
        if row[1] == gone:
            before = yield q.number_before(session=session, owner=gone, name=name)
            yield from titles.take(session, gone, name, at, before[0][0] if before else None)
    made = yield from moves.made_by(merge)
    yield q.add_move(move=id, kind="undo", lane=None, session=None, by=by, at=at)
    for step in made:
        [row] = yield q.bound(lane=step.lane.key)
        if row[0] == step.after:
            yield from moves.bind(step.lane, step.before, Why.UNDO, by, id, at)


def merges(person: PersonId) -> Transaction[list[Merge]]:
    """The merges that hold into a person, oldest first."""
    rows = yield q.merges_of(person=person)
    return [Merge(id, person, gone, since) for id, gone, since, _, _ in rows]


def identities(person: PersonId) -> Transaction[list[Identity]]:
    """Every way in which platforms know a person."""
    rows = yield q.identities_of(person=person)
    return [Identity.parse(key) for (key,) in rows]
