"""Homes: the place on each account for what has nowhere else to go, named in chat or in the host's settings."""

from collections.abc import Mapping

from segue.changes.places import addresses
from segue.core.contracts.database import Transaction
from segue.core.lanes import Place
from segue.core.settings import AccountSettings


class Homes:
    """Knows every home; one that was named in chat goes before one in the settings."""

    def __init__(self, accounts: Mapping[tuple[str, str], AccountSettings]) -> None:
        self._settings = accounts

    def of(self, platform: str, account: str) -> Transaction[Place | None]:
        """The home of an account."""
        named = yield from addresses.home(platform, account)
        if named is not None:
            return named.place
        return self._settings.get((platform, account), AccountSettings()).home

    def all(self) -> Transaction[list[Place]]:
        """Every home, by account."""
        found = {account: settings.home for account, settings in self._settings.items() if settings.home}
        named = yield from addresses.homes()
        for home in named:
            found[home.place.address.platform, home.place.address.account] = home.place
        return [found[account] for account in sorted(found)]
