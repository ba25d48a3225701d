"""Destinations: where a person may hand a conversation off to, and who could read it there.

Law: the host may hand off to any home, and to any chat that is known if its readers are agreed to; everybody else to
their own private chats. Naming a home was the host's yes to whoever reads there.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum

from segue.changes.people import persons
from segue.changes.places import addresses, windows
from segue.changes.places.addresses import NOBODY_KNOWN, Homes, is_own, is_surely_own, reader
from segue.core.accounts import Health, Reach
from segue.core.contracts.adapters import Adapter, OpensThreads
from segue.core.contracts.database import Transaction
from segue.core.destinations import Wanted, matching, shown
from segue.core.lanes import Address, Audience, Kind, Lane, Place, Rules, Sharing, lane_of
from segue.core.moves import Consent
from segue.core.people import Standing
from segue.core.settings import GatewaySettings
from segue.core.values import PersonId, Value
from segue.core.windows import ACCOUNT, EDITOR, TERMINAL, WEB, ShowsWindows, of_script
from segue.errors import Invalid

_SERVE = (
    "No platform is connected here. `segue add` adds one, and `segue serve` connects what you have: "
    "end this gateway, with /quit in its terminal or with Ctrl-C, and start it."
)
_NOWHERE = "No home is named yet where you are known. Type /home in a chat there, or /link yourself."


class Readers(Enum):
    """The readers of a place."""

    YOU = "only you can read there"
    OTHER = "{name} can read there"
    MANY = "everyone in {name} can read there"


class Choice(Value, frozen=True):
    """A place that a conversation can be handed off to."""

    name: str
    """As somebody types it."""
    place: Place
    consent: Consent = Consent.GIVEN
    """Whether more people could read there than the host said yes to."""
    lane: Lane | None = None
    """The lane there, if it is known before anything is opened: no thread can be."""
    reader: str = ""
    """Whose private chat it is, if it is somebody else's."""

    @property
    def readers(self) -> str:
        """Its readers, in words."""
        if self.reader:
            return Readers.OTHER.value.format(name=self.reader)
        who = Readers.YOU if self.place.audience is Audience.ONE else Readers.MANY
        return who.value.format(name=self.place.name or self.place.address.chat or "that chat")


def must_be_known(person: PersonId, place: Place, rules: Rules) -> Transaction[None]:
    """Refuse somebody's own lane in a group in which nobody knows who of the people there they are."""
    address = place.address
    apart = not place.opened and (rules.threads if address.thread else rules.groups) is Sharing.APART
    if place.kind is Kind.DM or not apart or (yield from _known(person, address)):
        return
    raise _link_first(shown(address.platform, address.account))


def own_chats(person: PersonId, platform: str, account: str) -> Transaction[list[Place]]:
    """A person's private chats on an account, the last used first."""
    own: list[Place] = []
    for place in (yield from addresses.private_chats(person, platform, account)):
        # Where somebody else has spoken, the two were taken for one person once and aren't.
        own += [place] if not place.address.thread and (yield from is_own(place, person)) else []
    return own


class Destinations:
    """Knows where a conversation can go."""

    def __init__(
        self,
        adapters: Mapping[tuple[str, str], Adapter],
        settings: GatewaySettings,
        me: Callable[[], str],
        health: Callable[[], Mapping[str, Health]] = dict,
    ) -> None:
        self._adapters = adapters
        self._me = me
        self._health = health
        self._rules = settings.routing.rules
        self._homes = Homes(settings.accounts)

    def find(
        self, wanted: Wanted, person: PersonId, standing: Standing, origin: Address
    ) -> Transaction[Sequence[Choice]]:
        """The places that somebody may have meant, at least one; raises `Invalid` with the reason if there is none."""
        accounts = matching(wanted, self._adapters)
        if not accounts:
            names = ", ".join(shown(*account) for account in self._adapters)
            alone = all(isinstance(adapter, ShowsWindows) for adapter in self._adapters.values())
            fix = self.nothing if alone else f"Connected are {names}."
            raise Invalid("destination", f"{wanted.name!r} isn't connected", fix)
        found: list[Choice] = []
        problems: list[Invalid] = []
        for platform, account in accounts:
            try:
                found += yield from self._on(platform, account, wanted.chat, person, standing, origin)
            except Invalid as problem:
                problems.append(problem)
        if not found:
            raise problems[0]
        return found

    def offered(self, person: PersonId, standing: Standing, origin: Address) -> Transaction[Sequence[Choice]]:
        """Every place that somebody may hand off to now."""
        found: list[Choice] = []
        for platform, account in sorted(self._adapters):
            try:
                found += yield from self._on(platform, account, "", person, standing, origin)
            except Invalid:
                # Not for them, or not now: it isn't offered.
                continue
        return found

    @property
    def nothing(self) -> str:
        """The advice where there is no place to go to."""
        alone = all(isinstance(adapter, ShowsWindows) for adapter in self._adapters.values())
        return _SERVE if alone else _NOWHERE

    def _on(
        self, platform: str, account: str, chat: str, person: PersonId, standing: Standing, origin: Address
    ) -> Transaction[Sequence[Choice]]:
        adapter, name = self._adapters[platform, account], shown(platform, account)
        if isinstance(adapter, ShowsWindows):
            return (yield from self._watched(adapter, chat, standing, origin))
        health = self._health().get(f"{platform}.{account}")
        if health is not None and health.reach is Reach.BROKEN:
            raise Invalid("destination", f"{name} {health.words.rstrip('.')}", "Try again when it is back.")
        if standing is not Standing.HOST:
            return (yield from self._own(platform, account, chat, person))
        home = yield from self._homes.of(platform, account)
        if home is not None and (not chat or chat == home.address.chat):
            lane = yield from self._flat(person, home, adapter)
            return [Choice(name, home, lane=lane, reader=(yield from reader(home, person)))]
        if not chat:
            fix = "Type /home in a chat there, or write home = { chat = ... } in segue.toml."
            raise Invalid("destination", f"{name} has no home", fix)
        known = yield from addresses.chats(platform, account, chat)
        if not known:
            raise Invalid("destination", f"nobody has spoken in {chat!r} on {name} yet", "Write something there first.")
        found = []
        for place in known:
            lane = yield from self._flat(person, place, adapter)
            alone = place.audience is Audience.ONE
            own = yield from is_surely_own(place, person)
            other = (yield from reader(place, person)) or NOBODY_KNOWN if alone and not own else ""
            consent = Consent.GIVEN if own else Consent.ASKED
            spelled = chat if len(known) == 1 else f"{place.address.space}/{place.address.chat}"
            found.append(Choice(f"{name}:{spelled}", place, consent, lane, other))
        return found

    def _own(self, platform: str, account: str, chat: str, person: PersonId) -> Transaction[Sequence[Choice]]:
        name = shown(platform, account)
        if not (yield from _known(person, Address(platform, account))):
            raise _link_first(name)
        own = [place for place in (yield from own_chats(person, platform, account)) if chat in ("", place.address.chat)]
        if not own:
            raise Invalid("destination", f"you have no private chat with me on {name}", "Write to me there first.")
        lane = yield from self._flat(person, own[0], self._adapters[platform, account])
        return [Choice(name if not chat else f"{name}:{chat}", own[0], lane=lane)]

    def _watched(
        self, adapter: ShowsWindows, chat: str, standing: Standing, origin: Address
    ) -> Transaction[Sequence[Choice]]:
        if standing is not Standing.HOST:
            raise Invalid("destination", f"the {adapter.platform} is the host's", "Choose a private chat of your own.")
        # A script's window comes and goes, and a window needs no handoff to itself.
        own = origin.chat if (origin.platform, origin.account) == (adapter.platform, ACCOUNT) else None
        others = yield from windows.elsewhere(adapter.platform, ACCOUNT, self._me())
        looked_at = sorted({*adapter.chats, *(address.chat for address in others)})
        open_now = [seen for seen in looked_at if not of_script(seen) and seen != own and chat in ("", seen)]
        if not open_now:
            what, fix = _UNSEEN[adapter.platform]
            raise Invalid("destination", what, fix)
        one = len(open_now) == 1
        return [
            Choice(
                adapter.platform if one else f"{adapter.platform}:{seen}",
                Place(_local(adapter, seen)),
                lane=Lane(_local(adapter, seen)),
            )
            for seen in open_now
        ]

    def _flat(self, person: PersonId, place: Place, adapter: Adapter) -> Transaction[Lane | None]:
        """The lane in a place where no thread can be opened: in a group that is one's own, if one is known there."""
        if isinstance(adapter, OpensThreads) and not place.address.thread:
            return None
        yield from must_be_known(person, place, self._rules)
        return lane_of(place, person, self._rules)


_UNSEEN = {
    TERMINAL: ("nobody looks at a terminal now", "Run `segue` there first."),
    WEB: ("nobody looks at a page now", "Open the page first."),
    EDITOR: ("an editor fetches its conversations itself", "Open this one from the list of sessions there."),
}
"""Why a window isn't to be had, and how one is opened."""


def _local(adapter: ShowsWindows, chat: str) -> Address:
    return Address(adapter.platform, ACCOUNT, chat=chat)


def _known(person: PersonId, address: Address) -> Transaction[bool]:
    identities = yield from persons.identities(person)
    account = address.platform, address.account
    return any((identity.platform, identity.account) == account for identity in identities)


def _link_first(name: str) -> Invalid:
    fix = "/link first: type it here, and send the code that you get from your account there."
    return Invalid("destination", f"nobody knows you on {name}", fix)
