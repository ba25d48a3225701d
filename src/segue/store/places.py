"""Places: the address that a chat's ids all stand for, and homes."""

from __future__ import annotations

from segue.core.contracts import Transaction
from segue.core.lanes import Address, Kind, Lane, Place, account_key
from segue.core.moves import Why
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.store import moves
from segue.store.statements import q


class Home(Value, frozen=True):
    """The place that its owner named for what has nowhere else to go."""

    place: Place
    by: PersonId
    since: Moment


def settle(place: Place, aliases: tuple[str, ...], by: PersonId, merge: str, at: Moment) -> Transaction[Place]:
    """The place under the id that its chat was first known by; other ids of the chat become aliases of that one."""
    chat = place.address.outside
    chats = [chat, *(Address(chat.platform, chat.account, chat.space, alias) for alias in aliases if alias)]
    settled: dict[str, Moment] = {}
    for key in dict.fromkeys(c.key for c in chats):
        rows = yield q.alias(alias=key)
        canonical = rows[0][0] if rows else key
        seen = yield q.address_since(address=canonical)
        if rows or seen:
            settled[canonical] = seen[0][0] if seen else at
    first = min(settled, key=lambda key: (settled[key], key)) if settled else chat.key
    for key in dict.fromkeys([*settled, *(c.key for c in chats)]):
        if key != first:
            yield q.repoint_aliases(old=key, address=first)
            yield q.add_alias(alias=key, address=first, at=at)
    for other in settled:
        if other != first:
            yield from _fold(Address.parse(other), Address.parse(first), by, merge, at)
    known = Address.parse(first)
    address = Address(known.platform, known.account, known.space, known.chat, place.address.thread)
    return Place(address, place.kind, place.name, place.topic, place.opened)


def opened(address: Address) -> Transaction[bool]:
    """Whether Segue itself opened this thread."""
    rows = yield q.address(address=address.key)
    return bool(rows) and rows[0][3] is not None


def set_home(place: Place, by: PersonId, at: Moment) -> Transaction[None]:
    """Name the home of an account."""
    yield from moves.see(place, "", at)
    account = account_key(place.address.platform, place.address.account)
    yield q.set_home(account=account, address=place.address.key, by=by, at=at)


def home(platform: str, account: str) -> Transaction[Home | None]:
    """The home of an account."""
    rows = yield q.home(account=account_key(platform, account))
    if not rows:
        return None
    address, kind, by, since = rows[0]
    return Home(Place(Address.parse(address), Kind(kind)), by, since)


def _fold(gone: Address, kept: Address, by: PersonId, move: str, at: Moment) -> Transaction[None]:
    """Two ids of one chat had sessions: of two lanes the one last used stays, the other's binding ends."""
    yield q.add_move(move=move, kind="merge", lane=None, session=None, by=by, at=at)
    # A thread's key is its chat's with the last part filled in, so that '/' and '0' enclose all of them.
    prefix = gone.key
    threads = yield q.threads_in(after=prefix, before=prefix[:-1] + "0")
    for address in (gone, *(Address.parse(row[0]) for row in threads)):
        target = Address(kept.platform, kept.account, kept.space, kept.chat, address.thread)
        rows = yield q.lanes_at(address=target.key)
        stays = {person: (session, used) for _, person, session, used in rows}
        rows = yield q.lanes_at(address=address.key)
        facts = yield q.address(address=address.key)
        for key, person, session, used in rows:
            if session is None:
                continue
            yield from moves.bind(Lane.parse(key), None, Why.MERGED, by, move, at)
            there, last = stays.get(person, (None, 0.0))
            if there is not None and last >= used:
                continue
            kind, name, topic, was_opened = facts[0]
            place = Place(target, Kind(kind), name, topic, was_opened is not None)
            lane = yield from moves.see(place, person, at)
            yield from moves.bind(lane, SessionId(session), Why.MERGED, by, move, at)
