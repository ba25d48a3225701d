"""Strangers: persons who were only ever refused, forgotten in time."""

from collections.abc import Collection

from segue.changes.people import persons
from segue.changes.rows import each
from segue.core.contracts.database import Transaction
from segue.core.lanes import Identity
from segue.core.values import Moment, PersonId
from segue.database.statements import q

AT_ONCE = 200
_KEPT = 30 * 86400.0
"""Seconds for which a person is known who never got in; as long as their refusals are in the audit."""


def forget(after: str, hosts: Collection[Identity], at: Moment) -> Transaction[str]:
    """Forget those of some persons whom nothing mentions any more; returns the last one looked at, empty at the end.

    Whoever was let in, heard, asked, linked, blocked or refused lately stays, and so does the host.
    """
    page = yield from each(PersonId, q.persons_after(after=after, count=AT_ONCE))
    if not page:
        return ""
    before = at - _KEPT
    for person in (yield from each(PersonId, q.strangers(first=page[0], last=page[-1], before=before))):
        # Asked again under the lock: somebody may have let them in meanwhile.
        yield q.lock_persons(one=person, two=person)
        if not (yield q.strangers(first=person, last=person, before=before)):
            continue
        if set((yield from persons.identities(person))).isdisjoint(hosts):
            yield q.forget_identities(person=person)
            yield q.forget_tally(person=person)
            yield q.forget_person(person=person)
    return page[-1] if len(page) == AT_ONCE else ""
