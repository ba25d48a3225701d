"""Places: the address that a chat's ids all stand for, the lane that somebody speaks in there, and homes."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from segue.changes.people import actors, persons
from segue.changes.places import audiences, lanes, merges
from segue.changes.rows import each, first, one
from segue.changes.sessions import moves
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Audience, Identity, Lane, Person, Place, Rules, account_key, lane_of
from segue.core.settings import NO_ACCOUNT, AccountSettings
from segue.core.values import Moment, PersonId, Value
from segue.core.windows import HOSTS
from segue.database.statements import q

NOBODY_KNOWN = "somebody else"
_MOST = 64
_MOST_SPACES = 256
"""Chats that somebody is asked to choose from."""


class Home(Value, frozen=True):
    """The place that its owner named for what has nowhere else to go."""

    place: Place
    by: PersonId
    since: Moment


def lane(
    place: Place, aliases: Sequence[str], person: PersonId, rules: Rules, merge: str, at: Moment
) -> Transaction[Lane]:
    """The lane that a person speaks in at a place, remembered."""
    yield from merges.expect(place, aliases)
    person = yield from actors.hold(person)
    place = yield from merges.settle(place, aliases, person, merge, at)
    if not place.opened and (yield from opened(place.address)):
        place = replace(place, opened=True)
    yield from audiences.widen(place, merge, at)
    return (yield from moves.see(place, lane_of(place, person, rules).person, at))


def opened(address: Address) -> Transaction[bool]:
    """Whether Segue itself opened this thread."""
    known = yield from first(Place, q.address(address=address.key))
    return known is not None and known.opened


def as_known(place: Place) -> Transaction[Place]:
    """A place with the topic that is known for it, if one is."""
    known = yield from first(Place, q.address(address=place.address.key))
    return replace(place, topic=known.topic) if known and known.topic else place


def set_home(place: Place, by: PersonId, merge: str, at: Moment) -> Transaction[None]:
    """Name the home of an account: it stays with the chat, by the id that it was named in, if that is parted later."""
    by = yield from actors.hold(by)
    yield from moves.see((yield from merges.settle(place, (), by, merge, at)), "", at)
    yield from moves.see(place, "", at)
    account = account_key(place.address.platform, place.address.account)
    yield q.set_home(account=account, address=place.address.key, by=by, at=at)


def home(platform: str, account: str) -> Transaction[Home | None]:
    """The home of an account."""
    named = yield from first(Home, q.home(account=account_key(platform, account)))
    return (yield from _standing(named)) if named is not None else None


def homes() -> Transaction[list[Home]]:
    """Every home."""
    found: list[Home] = []
    for named in (yield from each(Home, q.homes())):
        standing = yield from _standing(named)
        found += [] if standing is None else [standing]
    return found


def _standing(named: Home) -> Transaction[Home | None]:
    """A home under the id that its chat goes by now; none if it is the private chat of who was parted from the host.

    Whoever named it was taken for them at the time.
    """
    address = (yield from lanes.settled(Lane(named.place.address))).address
    place = replace(named.place, address=address)
    if place.audience is Audience.ONE:
        host = (yield from persons.who(HOSTS[0])) or (yield from actors.now(named.by))
        theirs = {(yield from persons.who(_namesake(place))), *(yield from people(address))}
        for other in theirs - {None, host}:
            if (yield q.parted(one=host, two=other)):
                return None
    return replace(named, place=place)


class Homes:
    """Knows every home; one that was named in chat goes before one in the settings."""

    def __init__(self, accounts: Mapping[tuple[str, str], AccountSettings]) -> None:
        self._settings = accounts

    def of(self, platform: str, account: str) -> Transaction[Place | None]:
        """The home of an account."""
        named = yield from home(platform, account)
        if named is not None:
            return named.place
        written = self._settings.get((platform, account), NO_ACCOUNT).home
        return (yield from _looked_up(written)) if written is not None else None

    def all(self) -> Transaction[list[Place]]:
        """Every home, by account."""
        found: dict[tuple[str, str], Place] = {}
        for account, settings in self._settings.items():
            if settings.home is not None:
                found[account] = yield from _looked_up(settings.home)
        named = [home.place for home in (yield from homes())]
        found |= {(place.address.platform, place.address.account): place for place in named}
        return [found[account] for account in sorted(found)]


def _looked_up(home: Place) -> Transaction[Place]:
    """A home of the settings where its chat is known to be: whoever wrote it needn't know its space."""
    at = home.address
    known = [] if at.space else (yield from chats(at.platform, at.account, at.chat))
    spaces = {place.address.space for place in known}
    return replace(home, address=replace(at, space=spaces.pop())) if len(spaces) == 1 else home


def people(address: Address) -> Transaction[dict[PersonId, str]]:
    """The people who ever spoke at an address, with their names."""
    spoke = yield from each(Person, q.people_at(address=address.key))
    return {person.id: person.name for person in spoke}


def reader(place: Place, person: PersonId) -> Transaction[str]:
    """Whose private chat a place is, if it is somebody else's than this person's; empty else."""
    if place.audience is not Audience.ONE:
        return ""
    named = yield from persons.who(_namesake(place))
    spoke = yield from people(place.address)
    others = sorted(name or NOBODY_KNOWN for id, name in spoke.items() if id != person)
    if not others and named not in (None, person):
        others = [(yield from one(Person, q.person(person=named))).name or NOBODY_KNOWN]
    if not others and person not in (named, *spoke) and (yield q.started_afresh(address=place.address.key)):
        # Somebody had it for themselves before; who reads it now isn't known.
        return NOBODY_KNOWN
    return others[0] if others else ""


def is_own(place: Place, person: PersonId) -> Transaction[bool]:
    """Whether a private chat is a person's own as far as is known: nobody else has spoken there, or goes by its id."""
    return place.audience is Audience.ONE and not (yield from reader(place, person))


def is_surely_own(place: Place, person: PersonId) -> Transaction[bool]:
    """Whether a private chat is a person's own, and nobody else's: they have spoken there, or it goes by their id.

    Of one in which somebody has only typed commands nobody knows whose it is.
    """
    if not (yield from is_own(place, person)):
        return False
    if (yield from persons.who(_namesake(place))) == person or person in (yield from people(place.address)):
        return True
    within = _within(place.address.platform, place.address.account)
    linked: list[Place] = yield from each(Place, q.linked_chats(person=person, **within))
    return place.address in [known.address for known in linked]


def _namesake(place: Place) -> Identity:
    """The identity whose private chat a place is where such chats go by their person's id."""
    return Identity(place.address.platform, place.address.account, place.address.chat)


def private_chats(person: PersonId, platform: str, account: str) -> Transaction[list[Place]]:
    """A person's own private chats on an account: the last one bound first, then those in which they only linked."""
    within = _within(platform, account)
    spoken_in = yield from each(Place, q.private_lanes(person=person, count=_MOST, **within))
    linked_in = yield from each(Place, q.linked_chats(person=person, **within))
    return list({place.address: place for place in (*spoken_in, *linked_in)}.values())


def chats(platform: str, account: str, chat: str) -> Transaction[list[Place]]:
    """The places on an account that go by a chat's id, or by its space and its id where that isn't enough."""
    spaces = yield from _spaces(platform, account)
    by_id = [Address(platform, account, space, chat) for space in spaces]
    with_space = [Address(platform, account, s, chat[len(s) + 1 :]) for s in spaces if chat.startswith(f"{s}/")]
    for wanted in (by_id, with_space):
        found = []
        for address in dict.fromkeys(wanted):
            found += yield from each(Place, q.address(address=address.key))
        if found:
            return found
    return []


def _spaces(platform: str, account: str) -> Transaction[list[str]]:
    """The spaces of an account in which a chat is known: looked up one after the other, however many chats each has."""
    within, spaces = _within(platform, account), list[str]()
    while len(spaces) < _MOST_SPACES:
        address = yield from first(Address, q.address_after(**within))
        if address is None:
            break
        spaces.append(address.space)
        within["first"] = f"{Address(platform, account, address.space).key[:-2]}0"
    return spaces


def _within(platform: str, account: str) -> dict[str, str]:
    """Two strings between which all addresses of an account lie: `0` follows `/`."""
    key = Address(platform, account).key
    return {"first": f"{key[:-3]}/", "last": f"{key[:-3]}0"}
