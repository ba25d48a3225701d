"""Allowances: how much a person may have, by what the host lets them in for.

Law: a stranger is somebody who may talk only because an account is public. Whom the host named, let in by a code or
linked, wherever, is none. What a message shows of that is enough as long as it isn't over a limit.
"""

from msgspec.structs import replace

from segue.changes.people import actors, persons
from segue.changes.people.persons import Met
from segue.core.contracts.database import Transaction
from segue.core.lanes import Identity
from segue.core.messages import Arrival, File, encode_parts
from segue.core.people import Allowance, Limit, over
from segue.core.settings import NO_ACCOUNT, GatewaySettings
from segue.core.values import Moment, PersonId
from segue.database.statements import q


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

    def weigh(
        self, arrival: Arrival, shown: Allowance, met: Met, at: Moment
    ) -> Transaction[tuple[Limit | None, Allowance | None]]:
        """The limit that a message is over, and the allowance of its person if it comes near to that.

        The allowance that it alone shows its person to have is enough as long as it isn't over that.
        """
        tally, size = met.tally, len(encode_parts(arrival.parts).encode()) + files_of(arrival)
        limit = over(tally, shown, size, at)
        if limit is not None:
            shown = yield from self.of(met.person.id)
            limit = over(tally, shown, size, at)
        doubled = replace(tally, messages=2 * tally.messages, waiting=2 * tally.waiting, bytes=0)
        near = shown is self._limits.stranger or over(doubled, shown, 0, at)
        return limit, shown if near else None

    def _strange(self, identity: Identity) -> bool:
        account = self._accounts.get((identity.platform, identity.account), NO_ACCOUNT)
        return account.public and identity.user not in account.allow


def files_of(arrival: Arrival) -> int:
    """Bytes of the files that came with a message."""
    return sum(part.size for part in arrival.parts if isinstance(part, File))
