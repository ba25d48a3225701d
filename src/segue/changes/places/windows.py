"""Windows: which terminals and pages somebody looks at, on whichever replica."""

from collections.abc import Iterable

from segue.changes.rows import each
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address, account_key
from segue.database.statements import q


def tell(me: str, addresses: Iterable[Address]) -> Transaction[None]:
    """These are the places that somebody looks at here, and no others."""
    yield q.close_windows(replica=me)
    for address in sorted(addresses):
        account = account_key(address.platform, address.account)
        yield q.open_window(address=address.key, replica=me, account=account)


def elsewhere(platform: str, account: str, me: str) -> Transaction[list[Address]]:
    """The places of an account that somebody looks at and another replica serves."""
    return (yield from each(Address, q.windows_elsewhere(account=account_key(platform, account), me=me)))
