"""Search: an index that is filled behind the turns, so that it can neither fail nor slow one."""

from collections.abc import Sequence

from segue.changes.people import actors
from segue.changes.rows import each, first
from segue.core.contracts.database import Transaction
from segue.core.messages import Parts, plain_text
from segue.core.text.search_words import words_of
from segue.core.transcripts import Entry
from segue.core.values import PersonId, SessionId, Value
from segue.database.statements import q

_MOST_WORDS = 32
"""Words of a query that are looked for: more of them find nothing else."""


class Behind(Value, frozen=True):
    """A session with entries that can't be found yet, and how far its index has come."""

    session: SessionId
    indexed: int
    owner: PersonId


class NewEntry(Value, frozen=True):
    """An entry that can't be found yet."""

    seq: int
    n: int
    parts: Parts


class Batch(Value, frozen=True):
    """The next entries of a session that can't be found yet, as words."""

    session: SessionId
    after: int
    upto: int
    owner: PersonId
    words: tuple[tuple[int, str], ...]


def unindexed(count: int) -> Transaction[list[Batch]]:
    """Up to so many entries that can't be found yet; reading them and making words of them holds nobody up."""
    batches = []
    for behind in (yield from each(Behind, q.unindexed(count=count))):
        entries = yield from each(NewEntry, q.entries_to_index(session=behind.session, n=behind.indexed, count=count))
        words = [(entry.seq, " ".join(words_of(plain_text(entry.parts)))) for entry in entries]
        kept = tuple(entry for entry in words if entry[1])
        batches.append(Batch(behind.session, behind.indexed, entries[-1].n, behind.owner, kept))
        count -= len(entries)
        if count <= 0:
            break
    return batches


def index(batches: Sequence[Batch]) -> Transaction[int]:
    """Make entries findable; returns of how many sessions: one that is locked now comes later."""
    for batch in batches:
        for seq, tokens in batch.words if (yield from _still_to_do(batch)) else ():
            yield q.add_to_index(seq=seq, tokens=tokens, owner=batch.owner)
    # Last, so that no turn waits for the index.
    count = 0
    for batch in batches:
        count += len((yield q.indexed_upto(session=batch.session, n=batch.after, upto=batch.upto)))
    return count


def _still_to_do(batch: Batch) -> Transaction[bool]:
    return (yield from first(int, q.indexed(session=batch.session))) == batch.after


def search(owner: PersonId, text: str, count: int) -> Transaction[list[Entry]]:
    """The newest entries of an owner's sessions that have all these words, the last as a beginning."""
    words = words_of(text)[:_MOST_WORDS]
    if not words:
        return []
    owner = yield from actors.now(owner)
    ids = yield from each(str, q.everyone_in(person=owner))
    if not ids:
        return []
    match, tsquery = _match(words, ids), _tsquery(words, ids)
    return (yield from each(Entry, q.search(match=match, tsquery=tsquery, owner=owner, count=count)))


def _match(words: list[str], owners: list[str]) -> str:
    """An FTS5 query; words and ids hold letters and digits only, so that quotes are enough."""
    wanted = [f'tokens : "{word}"' for word in words[:-1]] + [f'tokens : "{words[-1]}" *']
    return " AND ".join([*wanted, "(" + " OR ".join(f'owner : "{id}"' for id in owners) + ")"])


def _tsquery(words: list[str], owners: list[str]) -> str:
    """A tsquery; words and ids hold letters and digits only, so that quotes are enough."""
    wanted = [f"'{word}'" for word in words[:-1]] + [f"'{words[-1]}':*"]
    return " & ".join([*wanted, "(" + " | ".join(f"'@{id}'" for id in owners) + ")"])
