"""Actors: who a person is now, whatever merges there were, held so that none happens while they act."""

from segue.changes.rows import first
from segue.core.contracts.database import Transaction
from segue.core.values import PersonId
from segue.database.statements import q
from segue.errors import Invalid


def now(person: PersonId) -> Transaction[PersonId]:
    """Who a person is now: themselves, or whom they were merged into."""
    while (other := (yield from first(PersonId, q.merged_into(person=person)))) is not None:
        person = other
    return person


def hold(person: PersonId) -> Transaction[PersonId]:
    """Who a person is now, and stays until the transaction ends."""
    while True:
        if not (yield q.hold_person(person=person)):
            raise Invalid("person", f"nobody is known as {person!r}", "Meet them first with `store.person(identity)`.")
        other = yield from first(PersonId, q.merged_into(person=person))
        if other is None:
            return person
        person = other
