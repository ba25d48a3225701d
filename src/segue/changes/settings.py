"""Segue's own settings: made once, the same for every process that shares the database."""

from segue.changes.rows import one
from segue.core.contracts.database import Transaction
from segue.database.statements import q


def once(name: str, value: str) -> Transaction[str]:
    """The value under a name; this one if there is none yet."""
    yield q.add_setting(name=name, value=value)
    return (yield from one(str, q.setting(name=name)))
