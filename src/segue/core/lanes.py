"""Places where people talk: addresses, the persons who speak there, and the lanes that a gateway keeps apart.

Law: two lanes are equal exactly when all six of their parts are. A key is the parts, each with `%`, `/`, control
characters and lone surrogates percent-encoded, joined by `/`; nothing is folded, trimmed or normalised, and `parse`
accepts only what `key` wrote. So no two lanes share a key, whatever characters a platform's ids contain.
"""

import re
from collections.abc import Iterable
from enum import Enum, StrEnum
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from segue.core.text.normal import normal
from segue.core.text.visible import shows
from segue.core.values import Moment, PersonId, Value
from segue.errors import Invalid

_ESCAPED = re.compile(r"[%/\x00-\x1f\x7f\ud800-\udfff]")
_LETTERS = re.compile(r"[^\W_]+")
_NAME_LENGTH = 64
_TOPIC_LENGTH = 1024


class Kind(StrEnum):
    """The sort of place at an address."""

    DM = "dm"
    GROUP = "group"
    CHANNEL = "channel"


class Audience(Enum):
    """The readers of a lane."""

    ONE = "one person, and the agent"
    MANY = "everyone who is in that chat or thread"


class Sharing(StrEnum):
    """Whether the people at an address share one lane or have one each."""

    TOGETHER = "together"
    """Everyone there speaks to one session."""
    APART = "apart"
    """Each person there speaks to a session of their own."""


class Address(Value, frozen=True, order=True):
    """A spot on a platform that a message can be sent to; a part that the platform doesn't have is empty."""

    platform: str
    account: str
    space: str = ""
    """Guild, workspace or homeserver."""
    chat: str = ""
    thread: str = ""

    @property
    def key(self) -> str:
        """The five parts as one string; `Address.parse` is its inverse."""
        return _join(self.platform, self.account, self.space, self.chat, self.thread)

    @staticmethod
    @lru_cache(maxsize=4096)
    def parse(key: str) -> "Address":
        """The address that wrote this key."""
        return Address(*_split(key, 5, "address"))

    @property
    def outside(self) -> "Address":
        """The same without its thread: the chat around it, unless a thread there is a chat itself (`Place.parent`)."""
        return Address(self.platform, self.account, self.space, self.chat)


class Lane(Value, frozen=True, order=True):
    """An address, or one person's share of it: what a binding starts from."""

    address: Address
    person: str = ""
    """Whose share it is; empty when the people there share it."""

    @property
    def key(self) -> str:
        """The six parts as one string; `Lane.parse` is its inverse."""
        its = self.address
        return _join(its.platform, its.account, its.space, its.chat, its.thread, self.person)

    # A gateway reads the keys of the same few places over and over.
    @staticmethod
    @lru_cache(maxsize=4096)
    def parse(key: str) -> "Lane":
        """The lane that wrote this key."""
        *address, person = _split(key, 6, "lane")
        return Lane(Address(*address), person)


class Identity(Value, frozen=True, order=True):
    """Somebody as one platform account knows them."""

    platform: str
    account: str
    user: str

    @property
    def key(self) -> str:
        """The three parts as one string; `Identity.parse` is its inverse."""
        return _join(self.platform, self.account, self.user)

    @property
    def name(self) -> str:
        """The three parts as people write them: `PLATFORM.ACCOUNT/USER`."""
        return f"{self.platform}.{self.account}/{self.user}"

    @property
    def form(self) -> str:
        """The id with what tells it from others of its kind left out: a number, a UUID and a name differ in it."""
        return _LETTERS.sub("x", self.user)

    @classmethod
    def named(cls, name: str) -> "Identity":
        """The identity that people write like this."""
        where, _, user = name.partition("/")
        platform, _, account = where.partition(".")
        return cls(platform, account, user)

    @staticmethod
    @lru_cache(maxsize=4096)
    def parse(key: str) -> "Identity":
        """The identity that wrote this key."""
        return Identity(*_split(key, 3, "identity"))


class Person(Value, frozen=True):
    """Somebody who spoke, by a stable id. The name is display only."""

    id: PersonId
    name: str
    since: Moment


class Rules(Value, frozen=True):
    """The host's settings that say who shares a lane."""

    groups: Sharing = Sharing.APART
    threads: Sharing = Sharing.TOGETHER


class Place(Value, frozen=True):
    """An address with what is known about it."""

    address: Address
    kind: Kind = Kind.DM
    name: str = ""
    topic: str = ""
    opened: bool = False
    """Segue itself opened this thread, so it is shared whatever the settings say."""
    parent: Address | None = None
    """The chat that a thread belongs to, where the thread's own address doesn't tell."""

    @property
    def around(self) -> Address:
        """The chat that this thread belongs to; the address itself if it is no thread."""
        return self.parent or self.address.outside

    @property
    def audience(self) -> Audience:
        """The readers of this place."""
        return Audience.ONE if self.kind is Kind.DM else Audience.MANY


def also_read_in(places: Iterable[Place]) -> str:
    """The line for whoever goes on alone with what others read."""
    names = " and ".join(dict.fromkeys(place.name or place.address.chat or "that chat" for place in places))
    return f"Everyone in {names} reads this session. /branch goes on alone."


def lane_of(place: Place, person: str, rules: Rules) -> Lane:
    """The lane that this person speaks in at this place.

    A part that is missing falls back to the widest one that is known; platform, account and space are never mixed.
    """
    address = place.address
    if place.kind is Kind.DM:
        if address.chat:
            return Lane(address)
        if person:
            return Lane(address, person)
        raise Invalid(
            "chat", "a private message names neither its chat nor its person", "Give at least one of the two."
        )
    sharing = rules.threads if address.thread else rules.groups
    if place.opened or sharing is Sharing.TOGETHER:
        return Lane(address) if address.chat or address.thread else Lane(address, person)
    return Lane(address, person)


def opened_in(around: Place, thread: Address) -> Place:
    """The place of a thread that Segue opened in a chat."""
    parent = None if thread.outside == around.around else around.around
    return Place(thread, around.kind, around.name, opened=True, parent=parent)


def account_key(platform: str, account: str) -> str:
    """A platform account as one string, without collisions."""
    return _join(platform, account)


def clean_place(place: Place) -> Place:
    """A place whose name and topic are shown like names; a topic may be longer."""
    topic = clean_name(place.topic, _TOPIC_LENGTH)
    return Place(place.address, place.kind, clean_name(place.name), topic, place.opened, place.parent)


def clean_name(name: str, most: int = _NAME_LENGTH) -> str:
    """A display name that can't forge anything: NFKC, one line, nothing invisible, at most 64 characters."""
    # What is cut off may be only hidden: so much of that is no name.
    text = name[: 16 * most]
    if text.isascii() and text.isprintable():
        return " ".join(text.split())[:most].rstrip()
    flat = "".join(" " if c.isspace() else c for c in text)
    shown = "".join(filter(shows, flat))
    # Normalised last: a hidden character may have stood between a letter and its accent.
    return " ".join(normal(shown, 16 * most).split())[:most].rstrip()


@lru_cache(maxsize=4096)
def _join(*parts: str) -> str:
    return "/".join(map(_escape, parts))


def _escape(part: str) -> str:
    if _ESCAPED.search(part) is None:
        return part
    return _ESCAPED.sub(lambda found: "".join(f"%{b:02X}" for b in found[0].encode("utf-8", "surrogatepass")), part)


def _split(key: str, count: int, what: str) -> list[str]:
    pieces = key.split("/")
    try:
        parts = [unquote_to_bytes(piece).decode("utf-8", "surrogatepass") for piece in pieces]
    except UnicodeError:
        parts = []
    if len(parts) != count or _join(*parts) != key:
        raise Invalid(what, f"{key!r} is not the key of any {what}", "Copy it whole, as Segue wrote it.")
    return parts
