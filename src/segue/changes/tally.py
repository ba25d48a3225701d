"""The tally: how much lies about, for whoever looks after a gateway."""

from segue.changes.rows import one
from segue.core.contracts.database import Transaction
from segue.database.checks import LATE, Alive, Pile, Tally
from segue.database.statements import q


def tally() -> Transaction[Tally]:
    """Count what lies about."""
    dead = yield from one(Pile, q.count_dead())
    letters = yield from one(Pile, q.count_letters())
    late = yield from one(Pile, q.count_late(seconds=LATE))
    idle = yield from one(Pile, q.count_idle(seconds=LATE))
    failed = yield from one(Pile, q.count_failed())
    return Tally(dead, letters, late, idle, failed, (yield from one(Alive, q.count_replicas())))
