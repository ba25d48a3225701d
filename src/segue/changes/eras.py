"""Eras: a database that was restored begins a new one, so that no key is used twice on a platform.

Law: an era stands before every key that a platform is given. What was answered after a backup was made is forgotten by
whoever restores it, but not by the platform: under an old key it would take a new answer for one that it has.
"""

from segue.core.contracts.database import Transaction
from segue.database.statements import q


def begin(id: str) -> Transaction[None]:
    """Begin a new era; nobody who ran before holds anything any more."""
    yield q.set_setting(name="era", value=f"{id}.")
    yield q.end_replicas()
