"""Allowances: how much a person may have, by what the host lets them in for.

Law: a stranger is somebody who may talk only because an account is public. Whom the host named, let in by a code or
linked, wherever, is none. What a message shows of that is enough as long as it isn't over a limit.
"""

from msgspec.structs import replace

from segue.changes.people import actors, persons
from segue.changes.people.persons import Met
from segue.changes.rows import first
from segue.core.contracts.database import Transaction
from segue.core.lanes import Identity, Kind, Lane
from segue.core.messages import Arrival, File, encode_parts
from segue.core.people import Allowance, Limit, PersonTally, over
from segue.core.settings import NO_ACCOUNT, GatewaySettings
from segue.core.values import Moment, PersonId
from segue.database.statements import q
from segue.database.transactions import Moved


class Allowing:
    """Knows what people may have, as the settings and the store say."""

    def __init__(self, settings: GatewaySettings) -> None:
        self._limits = settings.limits
        self._accounts = settings.accounts
        self._hosts = frozenset(settings.hosts)

    def of(self, person: PersonId) -> Transaction[Allowance]:
        """What a person may have, by all that is known of them."""
        known = yield from persons.identities(person)
        if not self._hosts.isdisjoint(known):
            return self._limits.host
        if (yield q.granted(person=(yield from actors.now(person)))) or not all(map(self._strange, known)):
            return self._limits.person
        return self._limits.stranger

    def limit(self, arrival: Arrival, lane: Lane, met: Met, at: Moment) -> Transaction[Limit | None]:
        """The limit that a message is over."""
        size = size_of(arrival)
        shown = over(met.tally, self._shown(arrival, lane, met), size, at)
        return shown and over(met.tally, (yield from self.of(met.person.id)), size, at)

    def recount(self, arrival: Arrival, lane: Lane, met: Met, at: Moment) -> Transaction[None]:
        """Look again once a message is counted, where others of its person may have come at the same time."""
        allowance = self._shown(arrival, lane, met)
        near = 2 * max(met.tally.recent(at) / allowance.messages_a_minute, met.tally.waiting / allowance.waiting) >= 1
        if not near and allowance is not self._limits.stranger:
            return
        now = (yield from first(PersonTally, q.tally(person=met.person.id))) or PersonTally()
        before = replace(now, messages=now.messages - 1, waiting=now.waiting - 1, bytes=0)
        if (yield from self.limit(arrival, lane, replace(met, tally=before), at)):
            raise Moved

    def _shown(self, arrival: Arrival, lane: Lane, met: Met) -> Allowance:
        """What a message alone shows that its person may have: never more than they may."""
        users = (arrival.speaker.identity.user, *arrival.speaker.aliases)
        platform, name = lane.address.platform, lane.address.account
        if any(Identity(platform, name, user) in self._hosts for user in users):
            return self._limits.host
        account = self._accounts.get((platform, name), NO_ACCOUNT)
        named = (
            account.allow.isdisjoint(users)
            if arrival.place.kind is Kind.DM
            else account.allow_groups.isdisjoint((arrival.place.address.chat, lane.address.chat))
        )
        return self._limits.stranger if account.public and named and not met.granted else self._limits.person

    def _strange(self, identity: Identity) -> bool:
        account = self._accounts.get((identity.platform, identity.account), NO_ACCOUNT)
        return account.public and identity.user not in account.allow


def size_of(arrival: Arrival) -> int:
    """Bytes that would be kept of a message."""
    return len(encode_parts(arrival.parts).encode(errors="surrogatepass")) + files_of(arrival)


def files_of(arrival: Arrival) -> int:
    """Bytes of the files that came with a message."""
    return sum(part.size for part in arrival.parts if isinstance(part, File))
