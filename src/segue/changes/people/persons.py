"""Persons: who an identity is, and what becomes of everything when two persons turn out to be one."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from itertools import combinations

from msgspec.structs import replace

from segue.changes import audit
from segue.changes.audit import Event, Fact
from segue.changes.people import actors
from segue.changes.places import lanes
from segue.changes.places import merges as merges_of_chats
from segue.changes.places.merges import ChatMerge
from segue.changes.rows import each, first, one
from segue.changes.sessions import moves, readings, titles
from segue.changes.sessions.rows import Locked
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Audience, Identity, Lane, Person, Place, clean_name
from segue.core.messages import Arrival, Speaker
from segue.core.moves import Why
from segue.core.people import PersonTally
from segue.core.titles import Title
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.core.windows import HOSTS
from segue.database.statements import q
from segue.database.transactions import Moved
from segue.errors import Invalid

_DESCRIBED = 3
WHY = {"link": "by a code", "alias": "because the platform says so", "host": "because the host says so"}
"""Why two persons, or two chats, are one."""


class Met(Value, frozen=True):
    """Who spoke, and whether it is the first time ever."""

    person: Person
    new: bool = False
    heard: bool = False
    """Whether an agent was ever asked something by them before."""
    blocked: bool = False
    """They may talk nowhere."""
    granted: bool = False
    """Whether the host let them in, wherever."""
    tally: PersonTally = PersonTally()


class Known(Value, frozen=True):
    """The person behind an identity, and whether an agent was ever asked something by them."""

    person: Person
    heard: bool
    blocked: bool
    granted: bool
    tally: PersonTally | None


class Astray(Value, frozen=True):
    """A title whose session belongs to another person now."""

    session: SessionId
    title: Title
    owner: PersonId


class IdentityFact(Value, frozen=True):
    """A fact: a platform knows a person by this, since when, and as whom they first spoke by it."""

    identity: Identity
    since: Moment
    first: PersonId


class Merge(Value, frozen=True):
    """A fact: these two persons are one."""

    id: str
    kept: PersonId
    gone: PersonId
    since: Moment
    why: str = ""
    """By a code, by an alias that the platform told, or by the settings."""


def meet(
    speaker: Speaker,
    new: PersonId,
    merge_ids: tuple[str, ...],
    at: Moment,
    looked: Mapping[str, Known | None] | None = None,
) -> Transaction[Met]:
    """Who this is; a new person if nobody knows them, a merge if two of their ids were two persons so far.

    What was `looked` up of their keys isn't looked up again.
    """
    looked = looked or {}
    platform, account = speaker.identity.platform, speaker.identity.account
    # A blank id would be one that everybody has.
    users = dict.fromkeys((speaker.identity.user, *(alias for alias in speaker.aliases if alias.strip())))
    name = clean_name(speaker.name)
    known: dict[str, Person] = {}
    unknown: list[str] = []
    heard = blocked = granted = False
    own = Identity(platform, account, speaker.identity.user).key
    speaks_as = ""
    tally = PersonTally()
    for key in sorted(Identity(platform, account, user).key for user in users):
        found = looked[key] if key in looked else (yield from first(Known, q.identity(key=key)))
        if found is None:
            unknown.append(key)
        else:
            known[found.person.id] = found.person
            heard, blocked = heard or found.heard, blocked or found.blocked
            speaks_as = found.person.id if key == own else speaks_as
            granted, tally = granted or found.granted, max(tally, found.tally or tally, key=lambda t: t.messages)
    first_time = not known
    if first_time:
        yield q.add_person(person=new, name=name, at=at)
        known[new] = Person(new, name, at)
    people = sorted(known.values(), key=lambda p: (p.since, p.id))
    if len(people) > 1 and (yield from _were_parted(people)):
        # Once parted they stay so, whatever the platform tells: whoever speaks is who they first spoke as.
        people = [known[speaks_as]] if speaks_as else people[:1]
    person, *others = people
    for other, merge in zip(others, merge_ids[: len(others)], strict=True):
        yield from join(person.id, other.id, "alias", person.id, merge, at)
    if unknown and (yield from actors.hold(person.id)) != person.id:
        raise Moved
    for key in unknown:
        if not (yield q.add_identity(key=key, person=person.id, at=at)):
            raise Moved
    if name and name != person.name:
        yield q.rename_person(person=person.id, name=name)
        person = Person(person.id, name, person.since)
    return Met(person, first_time, heard, blocked, granted, tally)


def sifted(arrival: Arrival) -> Transaction[Arrival]:
    """An arrival without the ids that are somebody else's: what was given to another person doesn't make them one.

    An id that is told beside a sole one is its owner's, unless whoever had it is known by another sole one.
    """
    speaker = arrival.speaker
    users = dict.fromkeys((speaker.identity.user, *speaker.aliases, speaker.sole))
    told = {user: replace(speaker.identity, user=user) for user in users}
    form = replace(speaker.identity, user=speaker.sole).form
    owners = set[PersonId | None]()
    for identity in told.values():
        owners |= {(yield from who(identity))} if identity.form == form else set()
    lost = []
    for user, identity in told.items():
        had = None if identity.form == form else (yield from who(identity))
        if had is None or had in owners:
            continue
        ways = yield from identities(had)
        others = [way for way in ways if (way.platform, way.account) == (identity.platform, identity.account)]
        if any(way.form == form and way.user not in told for way in others):
            lost.append(user)
    return arrival.without(lost) if lost else arrival


def _were_parted(people: Sequence[Person]) -> Transaction[bool]:
    """Whether any two of these were taken for one before, wrongly."""
    for one_, two in combinations(people, 2):
        if (yield q.parted(one=one_.id, two=two.id)):
            return True
    return False


def join(this: PersonId, other: PersonId, why: str, by: PersonId, id: str, at: Moment) -> Transaction[Merge]:
    """Two persons are one: the older stays, with all that both had."""
    yield from lanes.hold_merges()
    held = yield from each(PersonId, q.lock_persons(one=this, two=other))
    for person in (this, other):
        if person not in held:
            raise Invalid("person", f"nobody is known as {person!r}", "Check the id with `/who`.")
        # Locked now: what a neighbour merged before stays as it is.
        if (yield q.merged_into(person=person)):
            raise Moved
    if len(held) != 2:
        raise Invalid("person", "both are the same person", "Name two.")
    kept, gone = held
    yield q.add_merge(merge=id, kept=kept, gone=gone, why=why, by=by, at=at)
    yield q.add_move(move=id, kind="merge", lane=None, session=None, by=by, at=at)
    yield from _fold_lanes(gone, kept, by, id, at)
    yield q.heard_as_one(kept=kept, gone=gone)
    yield q.blocked_as_one(kept=kept, gone=gone)
    yield q.tallies_as_one(kept=kept, gone=gone)
    yield q.move_identities(kept=kept, gone=gone)
    yield q.move_sessions(kept=kept, gone=gone)
    yield q.move_questions(person=gone, to=kept)
    yield from _retitle(gone, at)
    yield from audit.note(Fact(Event.LINKED, kept, by, detail=f"{why}, with {gone}"), at)
    return Merge(id, kept, gone, at, why)


def link(this: PersonId, other: PersonId, why: str, by: PersonId, id: str, at: Moment) -> Transaction[Merge]:
    """Two persons are one, whoever they have been merged into since."""
    this, other = (yield from actors.now(this)), (yield from actors.now(other))
    return (yield from join(this, other, why, (yield from actors.now(by)), id, at))


def give(identity: Identity, person: PersonId, at: Moment) -> Transaction[None]:
    """A person is known by an identity of Segue's own, too."""
    yield q.add_identity(key=identity.key, person=(yield from actors.hold(person)), at=at)


def who(identity: Identity) -> Transaction[PersonId | None]:
    """The person behind an identity; None if nobody has spoken by it."""
    known = yield from first(Known, q.identity(key=identity.key))
    return known.person.id if known else None


def described(person: PersonId) -> Transaction[str]:
    """A person by name, which anybody can choose, and by some of their identities, which nobody can."""
    named = yield from one(Person, q.person(person=person))
    known = yield from identities(person)
    shown = ", ".join(identity.name for identity in known[:_DESCRIBED] if identity not in HOSTS)
    ways = [shown] if shown else ["at the terminal of this machine"]
    return f"{named.name or 'Somebody without a name'} ({', '.join(ways)})"


def linked_in(identity: Identity, address: Address) -> Transaction[None]:
    """Somebody says by a code who they are, in a private chat that is theirs."""
    yield q.set_linked_in(key=identity.key, address=address.key)


def part(merge: str, by: PersonId, id: str, at: Moment) -> Transaction[None]:
    """A merge was wrong: what each of the two began is theirs again, and lanes that didn't move since go back."""
    yield from lanes.hold_merges()
    held = yield from first(Merge, q.merge(merge=merge))
    if held is None:
        raise Invalid("merge", f"{merge!r} doesn't hold", "List the merges that do with `store.merges(person)`.")
    # The one who was kept may have been merged into somebody else since, with all that came from this merge.
    gone, kept = held.gone, (yield from actors.now(held.kept))
    yield q.lock_persons(one=kept, two=gone)
    if (yield q.merged_into(person=kept)) or not (yield q.end_merge(merge=merge, at=at)):
        raise Moved
    yield q.add_move(move=id, kind="part", lane=None, session=None, by=by, at=at)
    yield from audit.note(Fact(Event.UNLINKED, kept, by, detail=f"from {gone}"), at)
    inside = yield from each(PersonId, q.everyone_in(person=gone))
    yield from _part_chats(kept, inside, by, id, at)
    made = yield from moves.made_by(merge)
    for step in made:
        yield q.lock_lane(lane=step.lane.key)
    yield from _give_back(held, kept, inside, at)
    yield from _retitle(kept, at)
    yield q.tallies_as_two(kept=kept, gone=gone)
    for step in made:
        if (yield from lanes.speaks_to(step.lane)) == step.after and (
            step.before is None or (yield from _comes_back(step.lane, step.before))
        ):
            yield from moves.bind(step.lane, step.before, Why.UNDO, by, id, at)
    # Nobody goes on talking in a session that turned out to be somebody else's.
    for person, owner in ((kept, gone), (gone, kept)):
        astray = yield from each(Lane, q.lanes_astray(person=person, owner=owner))
        for lane in astray:
            yield from moves.bind(lane, None, Why.UNDO, by, id, at)
        yield q.forget_readings_astray(owner=owner)


def _give_back(merge: Merge, kept: PersonId, inside: Collection[PersonId], at: Moment) -> Transaction[None]:
    """Give whoever was taken for another what they began, with all that belongs to it."""
    gone = merge.gone
    for began in inside:
        yield q.move_identities_back(gone=gone, kept=kept, first=began)
        yield q.move_sessions_back(gone=gone, kept=kept, first=began)
    for child_of, others in ((gone, kept), (kept, gone)):
        yield q.move_children_back(gone=child_of, kept=others)
    yield q.move_schedules_back(gone=gone, kept=kept)
    yield q.move_questions_back(gone=gone, kept=kept)
    yield q.move_notes_back(gone=gone, kept=kept)
    for person in (gone, kept):
        yield q.drop_notes_told(person=person)
    yield q.end_own_questions(person=kept, at=at)
    yield q.end_permissions_since(person=kept, since=merge.since, at=at)


def _part_chats(kept: PersonId, inside: Collection[PersonId], by: PersonId, id: str, at: Moment) -> Transaction[None]:
    """Part the private chats of two persons that were taken for one: such a chat goes by its person's own id."""
    ways = yield from each(IdentityFact, q.identities_known(person=kept))
    theirs = [way.identity for way in ways if way.first in inside]
    chats = {Address(one.platform, one.account, chat=one.user) for one in theirs}
    for chat in sorted(chats, key=lambda chat: chat.key):
        now = yield from lanes.settled(Lane(chat))
        place = yield from first(Place, q.address(address=now.address.key))
        for merge in (yield from merges_of_chats.within(chat)) if place and place.audience is Audience.ONE else ():
            if (merge.gone in chats) != (merge.kept in chats):
                yield from merges_of_chats.part(merge.id, by, f"{id}/{merge.id}", at)


def _fold_lanes(gone: PersonId, kept: PersonId, by: PersonId, move: str, at: Moment) -> Transaction[None]:
    """Make one person's shares of addresses the other's."""
    pairs = []
    for theirs in (yield from each(Lane, q.lanes_of_person(person=gone))):
        lane = Lane(theirs.address, kept)
        yield q.see_lane(lane=lane.key, address=lane.address.key, person=kept, at=at)
        pairs.append((theirs, lane))
    yield from moves.fold({move: pairs}, by, at)


def _retitle(owner: PersonId, at: Moment) -> Transaction[None]:
    """Titles follow their sessions to another owner, with the number that they had there or have, if it is free."""
    for astray in (yield from each(Astray, q.titles_astray(owner=owner))):
        session, to, name = astray.session, astray.owner, astray.title.name
        before = yield from first(int, q.number_before(session=session, owner=to, name=name))
        yield from titles.take(session, to, name, at, before or astray.title.number)


def _comes_back(lane: Lane, session: SessionId) -> Transaction[bool]:
    """Whether a lane may speak again to its session: that is open, and what was said in it elsewhere is known there."""
    if (yield from one(Locked, q.lock_session(session=session))).closed:
        return False
    place = yield from first(Place, q.address(address=lane.address.key))
    alone = place is not None and place.audience is Audience.ONE
    return alone or (yield from readings.whole(lane.address, session))


def merges(person: PersonId) -> Transaction[list[Merge]]:
    """The merges that hold into a person, oldest first."""
    person = yield from actors.now(person)
    return (yield from each(Merge, q.merges_of(person=person)))


def merges_within(person: PersonId) -> Transaction[list[Merge]]:
    """Every merge that holds into a person, and into whom they were merged from."""
    found: list[Merge] = []
    for inside in (yield from each(PersonId, q.everyone_in(person=(yield from actors.now(person))))):
        found += yield from each(Merge, q.merges_of(person=inside))
    return sorted(found, key=lambda merge: (merge.since, merge.id))


def came_by(merge: Merge) -> Transaction[str]:
    """The identities that a merge brought, why and since when."""
    kept = yield from actors.now(merge.kept)
    inside = yield from each(PersonId, q.everyone_in(person=merge.gone))
    ways = yield from each(IdentityFact, q.identities_known(person=kept))
    named = ", ".join(way.identity.name for way in ways if way.first in inside)
    return f"{named or merge.gone}, {_since(merge)}"


def chat_came_by(merge: ChatMerge) -> str:
    """The id that a merge of chats brought, why and since when."""
    return f"The chat {merge.gone.chat}, {_since(merge)}"


def _since(merge: Merge | ChatMerge) -> str:
    return f"{WHY.get(merge.why, merge.why)}, since {datetime.fromtimestamp(merge.since, UTC):%Y-%m-%d}"


def part_by(merge: str, by: PersonId, id: str, at: Moment) -> Transaction[Merge]:
    """Part two persons because one of them, or the host, says so; returns the merge that was undone."""
    held = yield from first(Merge, q.merge(merge=merge))
    if held is None:
        raise Invalid("merge", f"{merge!r} doesn't hold", "List those that do with /unlink.")
    if held.why == "host":
        fix = "Take one of them out of `owners` first."
        raise Invalid("merge", "segue.toml says that both are the host", fix)
    yield from part(merge, by, id, at)
    return held


def identities(person: PersonId) -> Transaction[list[Identity]]:
    """Every way in which platforms know a person."""
    return (yield from each(Identity, q.identities_of(person=(yield from actors.now(person)))))
