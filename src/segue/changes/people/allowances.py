"""Allowances: how much a person may have, by what the host lets them in for.

Law: a stranger is somebody who may talk only because an account is public. Whom the host named, let in by a code or
linked, wherever, is none. What a message shows of that is enough as long as it isn't over a limit.
"""

from msgspec.structs import replace

from segue.changes.people import actors, persons
from segue.changes.people.persons import Met
from segue.changes.rows import first
from segue.core.contracts.database import Transaction
from segue.core.lanes import Identity, account_key
from segue.core.messages import Arrival, File, encode_parts
from segue.core.people import DAY, Allowance, Limit, over
from segue.core.settings import NO_ACCOUNT, GatewaySettings
from segue.core.values import Moment, PersonId, Value
from segue.database.statements import q


class Weighed(Value, frozen=True):
    """A message against what its person may have."""

    limit: Limit | None = None
    """The limit that it is over."""
    near: Allowance | None = None
    """The allowance that it comes near to: to be looked at again once the message is counted."""
    files: int = 0
    """Bytes of its files."""
    strangers: str = ""
    """The tally of all strangers of its account together, if its person is one."""
    size: int = 0
    """Bytes of it all."""


def strangers_of(arrival: Arrival) -> str:
    """The name of the tally in which all strangers of an account are counted."""
    address = arrival.place.address
    return f"strangers of {account_key(address.platform, address.account)}"


class Allowing:
    """Knows what people may have, as the settings and the store say."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._limits = settings.limits
        self._accounts = settings.accounts
        self._hosts = frozenset(settings.hosts)

    def of(self, person: PersonId) -> Transaction[Allowance]:
        """The allowance of a person, by all that is known of them."""
        if not self._hosts.isdisjoint((yield from persons.identities(person))):
            return self._limits.host
        return self._limits.stranger if (yield from self.strange(person)) else self._limits.person

    def strange(self, person: PersonId) -> Transaction[bool]:
        """Whether a person is a stranger."""
        known = yield from persons.identities(person)
        if not self._hosts.isdisjoint(known) or (yield q.granted(person=(yield from actors.now(person)))):
            return False
        return all(map(self._strange, known))

    def weigh(self, arrival: Arrival, shown: Allowance, met: Met, at: Moment) -> Transaction[Weighed]:
        """A message, weighed; `shown` is the allowance that it alone shows its person to have."""
        tally, files = met.tally, sum(part.size for part in arrival.parts if isinstance(part, File))
        size = len(encode_parts(arrival.parts).encode()) + files
        limit = over(tally, shown, size, at)
        if limit is not None:
            shown = yield from self.of(met.person.id)
            limit = over(tally, shown, size, at)
        strange = shown is self._limits.stranger
        account = strangers_of(arrival) if strange else ""
        if strange and limit is None:
            today = yield from first(int, q.bytes_today(strangers=account, after=at - DAY, at=at))
            limit = Limit.ACCOUNT if (today or 0) + size > self._limits.account_day else None
        doubled = replace(tally, messages=2 * tally.messages, waiting=2 * tally.waiting, bytes=0)
        near = strange or over(doubled, shown, 0, at)
        return Weighed(limit, shown if near else None, files, account, size)

    def _strange(self, identity: Identity) -> bool:
        account = self._accounts.get((identity.platform, identity.account), NO_ACCOUNT)
        return account.public and identity.user not in account.allow
