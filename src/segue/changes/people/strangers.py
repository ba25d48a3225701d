"""Strangers: persons who were only ever refused, forgotten in time."""

from collections.abc import Collection

from segue.changes.people import persons
from segue.changes.rows import each
from segue.core.contracts.database import Transaction
from segue.core.lanes import Identity
from segue.core.values import Moment, PersonId, Value
from segue.database.statements import q

AT_ONCE = 200
_KEPT = 30 * 86400.0
"""Seconds for which a person is known who never got in; as long as their refusals are in the audit."""


class Page(Value, frozen=True):
    """Persons that were looked at, by their ids."""

    last: str
    """The last of them; empty if there are no more."""
    strangers: tuple[PersonId, ...]
    """Those of them whom nothing mentions any more."""


def find(after: str, at: Moment) -> Transaction[Page]:
    """Look for strangers among some persons; only reads, so that it holds nobody up.

    Whoever was let in, heard, asked, linked, blocked or refused lately is none.
    """
    page = yield from each(PersonId, q.persons_after(after=after, count=AT_ONCE))
    if not page:
        return Page("", ())
    found = yield from each(PersonId, q.strangers(first=page[0], last=page[-1], before=at - _KEPT))
    return Page(page[-1] if len(page) == AT_ONCE else "", tuple(found))


def forget(person: PersonId, hosts: Collection[Identity], at: Moment) -> Transaction[None]:
    """Forget a stranger, unless somebody has let them in meanwhile; the host stays."""
    yield q.lock_persons(one=person, two=person)
    if not (yield q.strangers(first=person, last=person, before=at - _KEPT)):
        return
    if set((yield from persons.identities(person))).isdisjoint(hosts):
        yield q.forget_identities(person=person)
        yield q.forget_tally(person=person)
        yield q.forget_person(person=person)
