"""Merges of chats: ids that are one chat's, and what becomes of its lanes when two turn out to be one, or not to be.

Law: an id that is told beside another is a merge with since, until and why. `aliases` is what all that hold come to:
for each id the one by which its chat was first known. Two ids that were parted stay two when they are told together
again. An id that is told for the first time later, or the host, makes them one.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, product

from msgspec.structs import replace

from segue.changes import audit
from segue.changes.audit import Event, Fact
from segue.changes.places import audiences, lanes
from segue.changes.places.lanes import after
from segue.changes.rows import each, first
from segue.changes.sessions import moves, readings
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Audience, Lane, Place, account_key
from segue.core.moves import Why
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q
from segue.database.transactions import Moved
from segue.errors import Invalid

_KEPT = 30 * 86400.0
_AT_ONCE = 1000
_FIX = "`segue lanes links` lists those that do."


class ChatMerge(Value, frozen=True):
    """A fact: these two ids are one chat's."""

    id: str
    kept: Address
    gone: Address
    since: Moment
    why: str
    """By an alias that the platform told, or by the host."""
    by: PersonId


class SpeakingLane(Value, frozen=True):
    """A lane, the session that it speaks to, and the move by which it does."""

    lane: Lane
    session: SessionId
    move: str


class ChatAlias(Value, frozen=True):
    """An id of a chat, and the one that it stands for."""

    alias: str
    address: str


class PartedChats(Value, frozen=True):
    """Two ids that were taken for one chat's once and parted."""

    one: str
    two: str


class Grounds(Value, frozen=True):
    """Why chats are one, who says so, the id of the first merge that it makes, and when."""

    why: str
    by: PersonId
    id: str
    at: Moment


def expect(place: Place, aliases: Sequence[str]) -> Transaction[None]:
    """If two chats turn out to be one, keep other merges away before anybody is held: no two wait for each other."""
    if aliases and len((yield from _told(_keys(place.address, aliases)))[1]) > 1:
        yield from lanes.hold_merges()


def settle(place: Place, aliases: Sequence[str], by: PersonId, merge: str, at: Moment) -> Transaction[Place]:
    """The place under the id that its chat was first known by; other ids of the chat become aliases of that one."""
    keys = _keys(place.address, aliases)
    if not keys:
        return place
    stays = yield from _join(keys, Grounds("alias", by, merge, at))
    return replace(place, address=replace(place.address, chat=stays.chat))


def link(one: Address, two: Address, by: PersonId, merge: str, at: Moment) -> Transaction[Address]:
    """Two chats are one because the host says so, whatever was said before; returns the id that stays."""
    keys = [one.outside.key, two.outside.key]
    if (one.platform, one.account, one.space) != (two.platform, two.account, two.space):
        raise Invalid("chat", "they are on two accounts", "Name two chats of one account.")
    found = yield from _chats(keys)
    if len(set(found)) == 1:
        raise Invalid("chat", "both are one chat already", "`segue lanes links` shows why.")
    for chat in found:
        if (yield from first(float, q.chat_since(chat=chat, after=after(chat)))) is None:
            known = "`segue lanes` lists those that are known."
            raise Invalid("chat", f"nobody has spoken in {Address.parse(chat).chat!r}", known)
    yield from lanes.hold_merges()
    yield q.forget_parting(one=min(keys), two=max(keys))
    return (yield from _join(keys, Grounds("host", by, merge, at)))


def part(merge: str, by: PersonId, id: str, at: Moment) -> Transaction[ChatMerge]:
    """A merge was wrong: each chat has its lanes again, with what each spoke to, and what was said since stays.

    A lane that has moved on since stays where it is. The chat that stayed has no claim to what only the other had read.
    """
    yield from lanes.hold_merges()
    held = yield from first(ChatMerge, q.chat_merge(merge=merge))
    if held is None:
        raise Invalid("link", f"{merge!r} doesn't hold", _FIX)
    kept = (yield from first(str, q.alias(alias=held.kept.key))) or held.kept.key
    inside = yield from each(str, q.chats_within(merge=merge))
    others = {kept, *(yield from each(str, q.aliases_of(address=kept)))} - {*inside}
    yield from _hold_chats({*inside, *others})
    pairs = yield from _lanes_in(held.gone.key)
    yield q.end_chat_merge(merge=merge, move=id, at=at)
    yield q.remove_alias(alias=held.gone.key)
    for chat in inside:
        if chat != held.gone.key:
            yield q.add_alias(alias=chat, address=held.gone.key, at=at)
        for other in others:
            yield q.add_parting(one=min(chat, other), two=max(chat, other), merge=merge)
    yield q.add_move(move=id, kind="part", lane=None, session=None, by=by, at=at)
    account = account_key(held.gone.platform, held.gone.account)
    yield from audit.note(Fact(Event.UNLINKED, "", by, account, detail=_words(held)), at)
    parting = _Parting(held, Address.parse(kept), tuple(inside))
    for lane, session in (yield from _held(parting, pairs)).items():
        back = session if (yield from _comes_back(lane, parting.stays, session)) else None
        if (yield from lanes.speaks_to(lane)) not in (session, back):
            yield from moves.bind(lane, back, Why.UNDO, by, id, at)
    yield q.move_origins_back(merge=merge, chat=kept, after=after(kept))
    for other, chat in product(sorted(others), inside):
        both = {"chat": other, "after": after(other), "gone": chat, "gone_after": after(chat)}
        yield q.part_bindings(since=held.since, at=at, **both)
        yield q.forget_readings_like(since=held.since, **both)
    return held


def _comes_back(lane: Lane, kept: Address, session: SessionId | None) -> Transaction[bool]:
    """Whether a lane may speak again to its session: what was said in it was read there, or by both as one."""
    place = yield from first(Place, q.address(address=lane.address.key))
    if session is None or place is None or place.audience is Audience.ONE:
        return True
    as_one = replace(lane.address, chat=kept.chat)
    return (yield from readings.whole(lane.address, session)) or (yield from readings.whole(as_one, session))


def holding(count: int) -> Transaction[list[ChatMerge]]:
    """The merges of chats that hold, the newest first."""
    return (yield from each(ChatMerge, q.chat_merges(count=count)))


def within(address: Address) -> Transaction[list[ChatMerge]]:
    """The merges that made a chat what it is, oldest first."""
    chat = (yield from lanes.settled(Lane(address.outside))).address.key
    found: list[ChatMerge] = []
    for id in (chat, *(yield from each(str, q.aliases_of(address=chat)))):
        found += yield from each(ChatMerge, q.chat_merges_into(chat=id))
    return sorted(found, key=lambda merge: (merge.since, merge.id))


def folded(address: Address) -> Transaction[list[ChatMerge]]:
    """Those of the merges that made a chat what it is by which two came together that people had spoken in."""
    found: list[ChatMerge] = []
    for merge in (yield from within(address)):
        found += [merge] if (yield q.move(move=merge.id)) else []
    return found


def unspoken(at: Moment) -> Transaction[list[str]]:
    """Merges of ids that strangers brought a month ago, and by which nobody got in."""
    return (yield from each(str, q.unspoken_merges(before=at - _KEPT, count=_AT_ONCE)))


def forget(unspoken: Sequence[str], at: Moment) -> Transaction[None]:
    """Forget ids by which nobody got in."""
    for merge in unspoken:
        # Asked again: somebody may have been let in meanwhile.
        for gone in (yield from each(str, q.forget_merge(merge=merge, before=at - _KEPT))):
            yield q.remove_alias(alias=gone)


def _keys(address: Address, aliases: Sequence[str]) -> list[str]:
    """A chat, by each of its ids."""
    ids = [id for id in dict.fromkeys((address.chat, *aliases)) if id]
    return [Address(address.platform, address.account, address.space, id).key for id in ids]


def _told(keys: Sequence[str]) -> Transaction[tuple[list[str], list[str]]]:
    """The ids that count of some that were told together, and the chats that they stand for.

    Of two that were parted the first one counts, and no other id of the second one's chat does.
    """
    chats = dict(zip(keys, (yield from _chats(keys)), strict=True))
    apart, pairs = set[str](), set[frozenset[str]]()
    if len(set(chats.values())) > 1:
        parted = yield from each(PartedChats, q.parted_chats(keys=_listed(keys)))
        pairs = {frozenset((pair.one, pair.two)) for pair in parted}
    for one, two in combinations(keys if pairs else (), 2):
        if chats[one] not in apart and frozenset((one, two)) in pairs:
            apart.add(chats[two])
    told = {key: chat for key, chat in chats.items() if chat not in apart}
    return list(told), list(dict.fromkeys(told.values()))


def _hold_chats(keys: Collection[str]) -> Transaction[None]:
    """Let nobody else change whether some ids are one chat's; deliveries there go on, under names of their own."""
    for key in sorted(keys):
        yield q.hold_name(name=f"chat {key}")


def _chats(keys: Sequence[str]) -> Transaction[list[str]]:
    """The chat that each of some ids stands for."""
    chats = {found.alias: found.address for found in (yield from each(ChatAlias, q.aliases_in(keys=_listed(keys))))}
    return [chats.get(key, key) for key in keys]


def _listed(keys: Sequence[str]) -> str:
    # This way an id that no database can keep comes to its driver, which refuses it.
    return json.dumps(keys, ensure_ascii=False)


def _join(keys: Sequence[str], grounds: Grounds) -> Transaction[Address]:
    """Make one chat of all that some ids stand for; returns the id that was known first."""
    told, chats = yield from _told(keys)
    if len(chats) > 1:
        yield from lanes.hold_merges()
    # Held, so that no lane opens there meanwhile.
    yield from _hold_chats({*told, *chats})
    if (yield from _told(keys)) != (told, chats):
        raise Moved
    if len(chats) == 1:
        return Address.parse(chats[0])
    since: dict[str, Moment | None] = {}
    for chat in chats:
        since[chat] = yield from first(float, q.chat_since(chat=chat, after=after(chat)))
    oldest = min(since, key=lambda key: (since[key] is None, since[key] or 0.0))
    gone: dict[str, Address] = {}
    for chat in chats:
        if chat == oldest:
            continue
        merge = f"{grounds.id}/{len(gone)}" if gone else grounds.id
        gone[merge] = Address.parse(chat)
        # An id that nobody spoke by belongs to the one that it was told with.
        with_it = told[0] if since[chat] is None and chat != told[0] else oldest
        row = {"merge": merge, "kept": with_it, "gone": chat, "why": grounds.why, "by": grounds.by, "at": grounds.at}
        yield q.add_chat_merge(**row)
        yield q.repoint_aliases(old=chat, address=oldest)
        yield q.add_alias(alias=chat, address=oldest, at=grounds.at)
    yield q.forget_partings(chat=oldest)
    spoken = {merge: chat for merge, chat in gone.items() if since[chat.key] is not None}
    yield from _fold(spoken, Address.parse(oldest), grounds)
    return Address.parse(oldest)


def _fold(gone: Mapping[str, Address], kept: Address, grounds: Grounds) -> Transaction[None]:
    """Ids of one chat had lanes of their own: each lane there is the same lane of the chat that stays."""
    by, at = grounds.by, grounds.at
    folds, places = dict[str, list[tuple[Lane, Lane]]](), list[tuple[Address, Address]]()
    for merge, chat in gone.items():
        pairs: list[tuple[Lane, Lane]] = []
        for there in (yield from each(Place, q.addresses_in(chat=chat.key, after=after(chat.key)))):
            place = yield from _joined(there, replace(kept, thread=there.address.thread), merge, at)
            for lane in (yield from each(Lane, q.lanes_at(address=there.address.key))):
                pairs += [(lane, (yield from moves.see(place, lane.person, at)))]
            places.append((there.address, place.address))
        if pairs:
            folds[merge] = pairs
            yield q.add_move(move=merge, kind="merge", lane=None, session=None, by=by, at=at)
        told = _words(ChatMerge(merge, kept, chat, at, grounds.why, by))
        fact = Fact(Event.LINKED, "", by, account_key(chat.platform, chat.account), detail=told)
        yield from audit.note(fact, at)
    yield from moves.fold(folds, by, at)
    for merge, pairs in folds.items():
        for theirs, stays in pairs:
            yield q.keep_origins(merge=merge, lane=theirs.key)
            yield q.move_origin(lane=theirs.key, to=stays.key)
    # The lanes are locked by now: nobody reads on in them meanwhile.
    for gone_place, stays_place in places:
        yield q.read_like(address=gone_place.key, to=stays_place.key)


def _joined(gone: Place, kept: Address, merge: str, at: Moment) -> Transaction[Place]:
    """The place that stays, described by the one that goes; a private one brings nothing along to a group."""
    stays = replace(gone, address=kept)
    known = yield from first(Place, q.address(address=kept.key))
    if known is not None and known.audience is not gone.audience:
        public = known if gone.audience is Audience.ONE else gone
        for address in (gone.address, kept):
            yield from audiences.widen(replace(public, address=address), f"{merge}/{address.key}", at)
        stays = replace(stays, kind=public.kind)
    return stays


class _Parting(Value, frozen=True):
    """A merge that is undone, the chat that stayed as it is now, and all ids that go."""

    merge: ChatMerge
    stays: Address
    inside: tuple[str, ...]

    def took(self, lane: Lane, session: SessionId) -> Transaction[bool]:
        """Whether a session came to a lane of the chat that stayed only because the two were one."""
        for chat in self.inside:
            where = {"chat": chat, "after": after(chat), "address": lane.address.key}
            if (yield q.spoken_in(session=session, since=self.merge.since, **where)):
                return True
        return False

    def before(self, lane: Lane, move: str) -> Transaction[SessionId | None]:
        """The session of its own that a lane spoke to before a move; None if there was none, or it is closed."""
        spoke = yield from moves.spoke_before(lane, move)
        while spoke is not None and lane.address.outside == self.stays and (yield from self.took(lane, spoke.session)):
            spoke = yield from moves.spoke_before(lane, spoke.move)
        return None if spoke is None or spoke.closed else spoke.session


def _lanes_in(chat: str) -> Transaction[list[tuple[Lane, Lane]]]:
    """The lanes of a chat that went, each with the one that it is now."""
    pairs = list[tuple[Lane, Lane]]()
    for place in (yield from each(Place, q.addresses_in(chat=chat, after=after(chat)))):
        for lane in (yield from each(Lane, q.lanes_at(address=place.address.key))):
            pairs += [(lane, (yield from lanes.now(lane)))]
    return pairs


def _held(parting: _Parting, pairs: Sequence[tuple[Lane, Lane]]) -> Transaction[dict[Lane, SessionId | None]]:
    """Hold all that an undone merge touches, lanes by key, then sessions by id; returns what each speaks to then."""
    then = yield from _then(parting, pairs)
    for lane in sorted({*then, *(lane for pair in pairs for lane in pair)}, key=lambda lane: lane.key):
        yield q.lock_lane(lane=lane.key)
    touched = {session for session in then.values() if session is not None}
    for chat in parting.inside:
        touched.update((yield from each(SessionId, q.sessions_in(chat=chat, after=after(chat)))))
    for session in sorted(touched):
        yield q.lock_session(session=session)
    # Asked again under the locks: somebody may have moved meanwhile.
    if (yield from _then(parting, pairs)) != then:
        raise Moved
    return then


def _then(parting: _Parting, pairs: Sequence[tuple[Lane, Lane]]) -> Transaction[dict[Lane, SessionId | None]]:
    """The sessions of the lanes of both chats once these are two again."""
    stays = parting.stays.key
    speaking = yield from each(SpeakingLane, q.speaking_in(chat=stays, after=after(stays)))
    then: dict[Lane, SessionId | None] = {}
    took: dict[Lane, SessionId] = {}
    for now in speaking:
        if (yield from parting.took(now.lane, now.session)):
            took[now.lane] = now.session
            then[now.lane] = yield from parting.before(now.lane, now.move)
    for theirs, ours in pairs:
        back = yield from lanes.now(theirs)
        session = took.get(ours) or (yield from parting.before(theirs, parting.merge.id))
        if then.get(back) is None and session is not None:
            then[back] = session
    return then


def _words(merge: ChatMerge) -> str:
    return f"chat {merge.gone.chat}, with {merge.kept.chat}"
