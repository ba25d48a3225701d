"""Pseudonyms of ids and phone numbers for an agent: the real ones, or stable ones by a keyed hash.

Law: one secret gives one id of a platform one pseudonym, for ever and on every machine; without the secret nobody can
tell the id from it. A pseudonym has no digits, so that none can look like a number. Routing never sees one.
"""

import hashlib
import hmac
import re
import unicodedata
from collections.abc import Collection, Iterable

from segue.core.lanes import Address, Identity

_LETTERS = "bcdfghjkmnpqrstvwxyz"
_LENGTH = 12
_PREFIX = "hidden-"
_PSEUDONYM = re.compile(rf"{_PREFIX}[{_LETTERS}]{{{_LENGTH}}}")
_SHORTEST = 4
"""Characters: what is shorter than this isn't looked for inside other words."""
_NUMBER = re.compile(r"\+?\(?\d(?:[\s().\-/\u2010-\u2015\u2212]{0,3}\d){6,}")


class NoVeil:
    """The agent is told everything as it is."""

    def identity(self, identity: Identity) -> Identity:
        """An identity as the agent knows it: itself."""
        return identity

    def address(self, address: Address) -> Address:
        """An address as the agent knows it: itself."""
        return address

    def text(self, text: str, near: Iterable[Identity | Address]) -> str:  # noqa: ARG002 -- as every veil is asked
        """A name or a topic as the agent is told it: itself."""
        return text


class Pseudonyms:
    """Ids and phone numbers are hidden, except on accounts whose platform mentions people by their ids."""

    def __init__(self, secret: str, shown: Collection[tuple[str, str]] = ()) -> None:
        self._secret = secret.encode()
        self._shown = frozenset(shown)
        self._known: dict[tuple[str, str], str] = {}

    def identity(self, identity: Identity) -> Identity:
        """The identity with what stands for its id."""
        if self._shows(identity):
            return identity
        return Identity(identity.platform, self._account(identity), self._of(identity.platform, identity.user))

    def address(self, address: Address) -> Address:
        """The address with what stands for its ids."""
        if self._shows(address):
            return address
        ids = (self._of(address.platform, id) if id else "" for id in (address.space, address.chat, address.thread))
        return Address(address.platform, self._account(address), *ids)

    def text(self, text: str, near: Iterable[Identity | Address]) -> str:
        """A name or a topic without phone numbers and without hidden ids of what it stands near."""
        hidden = {id: spot.platform for spot in near if not self._shows(spot) for id in ids_of(spot)}
        for id in sorted(hidden, key=len, reverse=True):
            if len(id) >= _SHORTEST:
                text = text.replace(id, self._of(hidden[id], id))
        return _NUMBER.sub(lambda found: self._of("", _digits(found[0])), text)

    def real(self, said: str, known: Iterable[Identity | Address]) -> str:
        """An agent's words with the real ids again; `known` is all that it may name."""
        if _PREFIX not in said:
            return said
        spots = list(known)
        # A number that stood in a name or in an account's name goes by itself, whatever it is the id of.
        told = [text for spot in spots for text in (spot.account, *ids_of(spot))]
        meant = {self._of("", _digits(number)): number for text in told for number in _NUMBER.findall(text)}
        meant |= {self._of(spot.platform, id): id for spot in spots for id in ids_of(spot)}
        return _PSEUDONYM.sub(lambda found: meant.get(found[0], found[0]), said)

    def _account(self, spot: Identity | Address) -> str:
        """The name of an account, which the host chose: it may be a phone number."""
        return self.text(spot.account, ())

    def _shows(self, spot: Identity | Address) -> bool:
        return (spot.platform, spot.account) in self._shown

    def _of(self, platform: str, id: str) -> str:
        key = platform, id
        if key not in self._known:
            if len(self._known) >= 10_000:
                self._known.clear()
            said = f"{len(platform)}/{platform}/{id}".encode("utf-8", "surrogatepass")
            number = int.from_bytes(hmac.digest(self._secret, said, hashlib.sha256))
            letters = ""
            for _ in range(_LENGTH):
                number, letter = divmod(number, len(_LETTERS))
                letters += _LETTERS[letter]
            self._known[key] = _PREFIX + letters
        return self._known[key]


Veil = NoVeil | Pseudonyms
"""The difference between what the gateway knows and what an agent is told."""


def ids_of(spot: Identity | Address) -> tuple[str, ...]:
    """The ids that somebody, or a place, goes by on its platform."""
    ids = (spot.user,) if isinstance(spot, Identity) else (spot.space, spot.chat, spot.thread)
    return tuple(id for id in ids if id)


def _digits(number: str) -> str:
    """A number however it was written."""
    return "".join(str(unicodedata.digit(c)) for c in number if c.isdecimal())
