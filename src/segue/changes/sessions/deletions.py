"""Deletions: an entry that its author took back is hidden, as a fact with a beginning and an end."""

from segue.changes.rows import each, first
from segue.core.contracts.database import Transaction
from segue.core.contracts.wakes import Topic, Wake
from segue.core.values import Moment, PersonId, SessionId, Value
from segue.database.statements import q


class Deletion(Value, frozen=True):
    """Something that a person took back, and when."""

    session: SessionId
    since: Moment


def entries(session: SessionId, seq: int, answered: int) -> Transaction[list[int]]:
    """The entries of a message that became a turn: as it was first asked, and as it was asked again by a retry."""
    asked = yield from each(int, q.turns_within(session=session, turn=answered))
    if seq not in asked:
        return []
    place, found = asked.index(seq), (yield from each(int, q.asked_in(session=session, turn=answered)))
    again = (yield from first(int, q.asked_again(session=session, n=found[0]))) if found else None
    shown = [found, (yield from each(int, q.asked_in(session=session, turn=again)))] if again else [found]
    return [among[place] for among in shown if place < len(among)]


def delete(session: SessionId, hidden: list[int], person: PersonId, at: Moment) -> Transaction[None]:
    """Hide entries from lists, searches and the next prompts; nothing is erased."""
    for n in hidden:
        yield q.delete_entry(session=session, n=n, person=person, at=at)
    yield q.void_states(session=session)
    yield Wake(Topic.HIDDEN, session)


def last(session: SessionId, person: PersonId) -> Transaction[Deletion | None]:
    """The last deletion by a person in a session."""
    return (yield from first(Deletion, q.last_deletion(session=session, person=person)))


def undo(deletion: Deletion, person: PersonId, at: Moment) -> Transaction[None]:
    """Show again what was taken back."""
    yield q.undelete(session=deletion.session, person=person, since=deletion.since, at=at)
    yield q.void_states(session=deletion.session)
    yield Wake(Topic.HIDDEN, deletion.session)
