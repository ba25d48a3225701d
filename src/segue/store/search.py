"""Search: an index that is filled behind the turns, so that it can neither fail nor slow one."""

from __future__ import annotations

from segue.core.contracts import Transaction
from segue.core.messages import decode_parts, plain_text
from segue.core.transcripts import Entry
from segue.core.values import PersonId
from segue.core.words import words_of
from segue.store.rows import entry_of
from segue.store.statements import q

_BATCH = 256


def index_some(count: int) -> Transaction[int]:
    """Make some entries findable that aren't yet; returns how many, so that 0 means all are."""
    done = 0
    sessions = yield q.unindexed(count=count)
    for session, indexed, _, owner in sessions:
        rows = yield q.entries_to_index(session=session, n=indexed, count=_BATCH)
        if not rows or not (yield q.indexed_upto(session=session, n=indexed, upto=rows[-1][1])):
            continue
        for seq, _, parts in rows:
            words = words_of(plain_text(decode_parts(parts)))
            if words:
                yield q.add_to_index(seq=seq, tokens=" ".join(words), owner=owner)
        done += len(rows)
    return done


def search(owner: PersonId, text: str, count: int) -> Transaction[list[Entry]]:
    """The newest entries of an owner's sessions that have all these words, the last as a beginning."""
    words = words_of(text)
    if not words:
        return []
    people = yield q.everyone_in(person=owner)
    ids = [id for (id,) in people]
    rows = yield q.search(match=_match(words, ids), tsquery=_tsquery(words, ids), owner=owner, count=count)
    return [entry_of(row) for row in rows]


def _match(words: list[str], owners: list[str]) -> str:
    """An FTS5 query; words and ids hold letters and digits only, so that quotes are enough."""
    wanted = [f'tokens : "{word}"' for word in words[:-1]] + [f'tokens : "{words[-1]}" *']
    return " AND ".join([*wanted, "(" + " OR ".join(f'owner : "{id}"' for id in owners) + ")"])


def _tsquery(words: list[str], owners: list[str]) -> str:
    """A tsquery; words and ids hold letters and digits only, so that quotes are enough."""
    wanted = [f"'{word}'" for word in words[:-1]] + [f"'{words[-1]}':*"]
    return " & ".join([*wanted, "(" + " | ".join(f"'@{id}'" for id in owners) + ")"])
