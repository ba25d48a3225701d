"""Ways to one person alone: where nobody else reads what they are told."""

from collections.abc import Mapping

from segue.changes.places import lanes
from segue.changes.places.destinations import own_chats
from segue.core.contracts.adapters import Adapter, Whispers, WhispersInAnswer
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, Audience, Lane, Place, Rules, lane_of
from segue.core.values import PersonId, Value


class Way(Value, frozen=True):
    """The way to one person alone."""

    address: Address
    lane: Lane
    """The lane in which it is read, and answered."""
    only: str = ""
    """The platform's id of that person, if others are there and aren't shown it."""


class Ways:
    """Finds the way to somebody who is in a place."""

    def __init__(self, adapters: Mapping[tuple[str, str], Adapter], rules: Rules) -> None:
        self._adapters = adapters
        self._rules = rules

    def alone(
        self, place: Place, lane: Lane, person: PersonId, user: str, answered: str = ""
    ) -> Transaction[Way | None]:
        """The place itself, unseen by others if they are there; else the person's private chat on that account.

        None if there is no such way. `user` is the platform's id of the person, `answered` that of their message.
        """
        address = place.address
        if place.audience is Audience.ONE:
            return Way(address, lane)
        adapter = self._adapters.get((address.platform, address.account))
        if user and adapter is not None and _whispers(adapter, answered):
            return Way(address, lane, user)
        return (yield from self.private(person, address.platform, address.account))

    def private(self, person: PersonId, platform: str, account: str) -> Transaction[Way | None]:
        """A person's private chat on an account, the last used."""
        for place in (yield from own_chats(person, platform, account)):
            return Way(place.address, (yield from lanes.now(lane_of(place, person, self._rules))))
        return None


def _whispers(adapter: Adapter, answered: str) -> bool:
    if isinstance(adapter, WhispersInAnswer):
        return adapter.whispers_to(answered)
    return isinstance(adapter, Whispers)
