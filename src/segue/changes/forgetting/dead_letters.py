"""Dead letters of forgotten messages and persons: they lose their words.

Ids are compared as ids: a number that occurs inside another one is another id.
"""

import re
from collections.abc import Iterable

import msgspec

from segue.changes.exchange.letters import DeadLetter, arrival_in
from segue.changes.places import lanes
from segue.changes.rows import each
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Identity, Lane, account_key
from segue.core.messages import Arrival
from segue.core.values import Moment
from segue.database.statements import q

_WORDS = (
    re.compile(r'"((?:[^"\\]|\\.)*)"'),
    re.compile(r"'((?:[^'\\]|\\.)*)'"),
    re.compile(r"""[^\s"',;=(){}\[\]<>|]+"""),
)
"""Where an id may stand in words of a platform: between quotes, or by itself."""


def clear_messages(messages: Iterable[tuple[str, str]], at: Moment) -> Transaction[None]:
    """Clear the dead letters that are one of these messages, quote or edit it; each has its address and its id."""
    by_account: dict[str, list[tuple[Address, str]]] = {}
    for route, message in sorted(messages):
        if route:
            address = Address.parse(route)
            by_account.setdefault(account_key(address.platform, address.account), []).append((address, message))
    for account, found in by_account.items():
        waiting = yield from each(DeadLetter, q.letters_at(account=account))
        forgotten: set[tuple[Address, str]] = set()
        for address, message in found if waiting else ():
            forgotten.add(((yield from _chat(address)), message))
        ids = {message for _, message in found}
        for letter in waiting:
            arrival = arrival_in(letter)
            if arrival is None:
                gone = _names(letter.raw, ids)
            elif own := {arrival.message, arrival.quotes, arrival.edits} & ids:
                chat = yield from _chat(arrival.place.address)
                gone = any((chat, id) in forgotten for id in own)
            else:
                gone = False
            if gone:
                yield q.clear_letter(id=letter.id, at=at)


def clear_person(identity: Identity, at: Moment) -> Transaction[None]:
    """Clear the dead letters that a person sent under one of their ids."""
    account = account_key(identity.platform, identity.account)
    for letter in (yield from each(DeadLetter, q.letters_at(account=account))):
        arrival = arrival_in(letter)
        own = _names(letter.raw, {identity.user}) if arrival is None else identity.user in _senders(arrival)
        if own:
            yield q.clear_letter(id=letter.id, at=at)


def _senders(arrival: Arrival) -> set[str]:
    return {arrival.speaker.identity.user, *arrival.speaker.aliases} - {""}


def _chat(address: Address) -> Transaction[Address]:
    """The chat of an address, under the id that it was first known by: threads of a chat share its message ids."""
    return (yield from lanes.settled(Lane(address))).address.outside


def _names(raw: str, ids: set[str]) -> bool:
    """Whether words that nobody could read hold one of these ids as a whole, however it is written there."""
    ways = {way for id in ids if id for way in (id, ascii(id)[1:-1], msgspec.json.encode(id).decode()[1:-1])}
    return any(not ways.isdisjoint(word.strip(":.") for word in words.findall(raw)) for words in _WORDS)
