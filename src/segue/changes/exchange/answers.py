"""Answers: all that was said to one message, once its turn is over."""

from segue.changes.exchange import traces
from segue.changes.exchange.traces import TurnState
from segue.changes.sessions import pages, sessions
from segue.core.contracts.database import Transaction
from segue.core.lanes import Address
from segue.core.messages import Parts, Text
from segue.core.transcripts import Role, Session
from segue.core.turns import TurnKind
from segue.core.values import Value
from segue.database.statements import q

_BY_ITSELF = frozenset({TurnKind.UNDO, TurnKind.REDO, TurnKind.REWIND, TurnKind.COMPRESS})
"""Turns that the gateway does itself and tells of, in no transcript."""


class TurnAnswer(Value, frozen=True):
    """The turn that a message became, as it stands."""

    session: Session
    turn: int
    state: TurnState
    said: tuple[Parts, ...] = ()

    @property
    def over(self) -> bool:
        """Whether nothing more comes."""
        return self.state not in (TurnState.QUEUED, TurnState.RUNNING)


def to_message(message: str) -> Transaction[TurnAnswer | None]:
    """The answer to a message so far; None if it became no turn, as a command doesn't."""
    turn = yield from traces.became(message)
    if turn is None:
        return None
    session = yield from sessions.known(turn.session)
    if turn.finished is None:
        return TurnAnswer(session, turn.turn, turn.state)
    entries = [] if turn.kind in _BY_ITSELF else (yield from pages.of_turn(session.tip, turn.within))
    said: list[Parts] = [entry.parts for entry in entries if entry.author.role is not Role.PERSON]
    if not said:
        said = [(Text(text),) for text in (yield from traces.notices(turn.session, turn.within))]
    return TurnAnswer(session, turn.turn, turn.state, tuple(said))


def on_its_way(address: Address, shown: str) -> Transaction[bool]:
    """Whether anything is still to be sent to an address, but for the message with a key, which was shown there."""
    return bool((yield q.unsent_at(address=address.key, key=shown)))
