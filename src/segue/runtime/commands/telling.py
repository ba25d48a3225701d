"""Commands that change what was said: /undo and /retry take their place in the session's queue, /stop acts at once."""

from __future__ import annotations

from segue.core.contracts import Ids, Transaction
from segue.core.messages import Text
from segue.core.moves import Actor, Limits
from segue.core.turns import TurnKind
from segue.runtime.commands.asking import Answer, Request, Table, bound
from segue.store import moves, sessions, transcripts, turns


class Telling:
    """Moves the tip of the session that the lane speaks to."""

    def __init__(self, limits: Limits, ids: Ids) -> None:
        self._limits = limits
        self._ids = ids
        self.table: Table = {"retry": self._retry, "stop": self._stop, "undo": self._undo}

    def _undo(self, request: Request) -> Transaction[Answer]:
        """Take back the newest of this lane's last move and its session's last exchange; a number counts exchanges."""
        if not request.rest:
            move = yield from moves.last_move(request.lane)
            session = yield from sessions.bound(request.lane)
            said = (yield from transcripts.entry(session.tip)) if session else None
            waiting = (yield from turns.waiting(session.id, 1)) if session else []
            if move is not None and not waiting and (said is None or move.at >= said.at):
                actor = Actor(request.met.person.id)
                yield from moves.undo(move.id, actor, self._limits, self._ids(), request.at)
                return Answer(f"Took back the last move: {move.kind}.")
        return (yield from _queued(request, TurnKind.UNDO))

    def _retry(self, request: Request) -> Transaction[Answer]:
        return (yield from _queued(request, TurnKind.RETRY))

    def _stop(self, request: Request) -> Transaction[Answer]:
        session = yield from bound(request)
        if not (yield from turns.stop(session.id, request.met.person.id)):
            return Answer("Nothing of yours is running.")
        return Answer(look=session.id)


def _queued(request: Request, kind: TurnKind) -> Transaction[Answer]:
    """A turn that moves the tip when all before it is answered."""
    session = yield from bound(request)
    return Answer(ask=(Text(request.rest),), kind=kind, session=session.id)
