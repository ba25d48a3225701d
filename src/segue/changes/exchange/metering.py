"""Metering: the month's messages of accounts whose platform counts them, and the warning before the free ones end."""

from segue.changes.exchange import deliveries
from segue.changes.places.addresses import Homes
from segue.changes.rows import one
from segue.core.contracts.database import Transaction
from segue.core.lanes import account_key
from segue.core.limits.meters import Metered, month_of
from segue.core.settings import GatewaySettings
from segue.core.values import Moment
from segue.database.statements import q


def metered(platform: str, account: str, free: int, zone: str, at: Moment) -> Transaction[Metered]:
    """The messages of an account in the month of a moment."""
    since = month_of(at, zone).since
    used = yield from one(int, q.count_reported(account=account_key(platform, account), since=since))
    return Metered(f"{platform}.{account}", used, free)


def look(platform: str, account: str, free: int, settings: GatewaySettings, at: Moment) -> Transaction[Metered]:
    """Count, and warn whoever is at the account's home, once a month, before the free ones end."""
    found = yield from metered(platform, account, free, settings.zone, at)
    home = (yield from Homes(settings.accounts).of(platform, account)) if found.low else None
    if home is not None:
        key = f"metered/{platform}.{account}/{month_of(at, settings.zone).name}"
        yield from deliveries.notify(home.address, found.warning, key, (), at)
    return found
