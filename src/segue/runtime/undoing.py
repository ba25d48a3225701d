"""A reset taken back: with the message that caused it, which is asked again in the session before."""

from __future__ import annotations

from collections.abc import Sequence

from segue.core.contracts import Transaction
from segue.core.lanes import Address, Lane
from segue.core.messages import Part, plain_text
from segue.core.moves import Why
from segue.core.transcripts import Entry, TipMove, before_answer, exchanges
from segue.core.turns import Ask, Finish, Onto, Reply, Run, TakeBack, TurnKind
from segue.core.values import PersonId
from segue.store import moves, titles

_RESETS = frozenset({Why.IDLE, Why.DAILY})


def reset_taken_back(run: Run, path: Sequence[Entry]) -> Transaction[Finish | None]:
    """What an undo leaves behind, if the exchange that it takes back is the one that a reset came with."""
    turn = run.turns[0]
    if turn.kind is not TurnKind.UNDO or plain_text(turn.parts).strip() or turn.lane is None:
        return None
    if len(exchanges(path)) != 1:
        return None
    lane = Lane.parse(turn.lane)
    move = yield from moves.last_move(lane)
    if move is None or move.why not in _RESETS or move.session != run.held.session:
        return None
    [step] = yield from moves.made_by(move.id)
    if step.before is None:
        return None
    to, asked = before_answer(path)
    parts: tuple[Part, ...] = tuple(part for entry in asked for part in entry.parts)
    again = Ask(
        step.before,
        TurnKind.ARRIVAL,
        f"undo/{run.held.session}/{run.name}",
        parts,
        asked[0].author.person,
        asked[0].author.name,
        lane.key,
        turn.route,
        turn.trace,
        turn.message,
        asked[0].source.identity,
    )
    title = yield from titles.of(step.before)
    where = f"“{title}”" if title else "the session before"
    said = f"Took back the reset. You are in {where} again, and your message is asked again there."
    return Finish(
        (turn.seq,),
        (),
        (Reply(Address.parse(turn.route), said, 0, (turn.message,)),),
        onto=Onto(to, TipMove.UNDO, turn.person),
        onward=(again,),
        back=TakeBack(move.id, PersonId(turn.person), f"{move.id}/undo"),
    )
