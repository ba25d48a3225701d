"""The contract of a sequel: what hangs on the answer to a turn, and is settled with the last message of it.

Law: whoever runs turns and whoever sends know no sequel by its name. They tell it what became of the turn and of that
message, and it records the one and the other in one transaction.
"""

from typing import Protocol

from segue.core.contracts.database import Transaction
from segue.core.messages import Outgoing
from segue.core.turns import Claim, Finish, Finished, TurnKind
from segue.core.values import Moment, SessionId


class Sequel(Protocol):
    """Something that is over once the answer to a turn was sent, or can't be; such as a handoff."""

    kind: TurnKind
    """The turns that have it."""
    pace: float
    """Seconds between two words that the answer grows."""

    def grew(self, session: SessionId, turn: int, at: Moment) -> Transaction[None]:
        """The agent says something."""
        ...

    def finish(self, held: Claim, done: Finish, at: Moment) -> Transaction[Finished]:
        """Finish the turn."""
        ...

    def is_over(self, id: str) -> Transaction[bool]:
        """Whether it has come to its end, so that nothing more is to be sent for it; `id` is `Outgoing.sequel`."""
        ...

    def sent(self, held: Outgoing, message: str, at: Moment) -> Transaction[None]:
        """The last message was sent."""
        ...

    def give_up(self, held: Outgoing, error: str, at: Moment) -> Transaction[None]:
        """The last message can't ever be sent."""
        ...
