"""How a turn begins: what is asked, on which path, or what is done without asking anybody."""

from collections.abc import Sequence
from typing import assert_never

from segue.core.messages import Aside, Compress, Notice, Order, Retry, Rewind, Summary, Undo, plain_text
from segue.core.transcripts import (
    Author,
    Draft,
    Enough,
    Entry,
    Path,
    Role,
    Source,
    Tip,
    TipMove,
    back_past,
    before_answer,
    before_exchange,
    covers_summary,
    exchanges,
)
from segue.core.turns import Onto, Run, Turn, TurnKind
from segue.core.values import Live, SessionId
from segue.errors import Refusal, Refused

_ORDERS: dict[TurnKind, type[Order]] = {
    TurnKind.UNDO: Undo,
    TurnKind.RETRY: Retry,
    TurnKind.REWIND: Rewind,
    TurnKind.COMPRESS: Compress,
}


class Beginning(Live, frozen=True):
    """What a turn comes to, once all before it is answered."""

    path: Path
    """What was said before it."""
    asked: tuple[Draft, ...] = ()
    onto: Onto | None = None
    """Where the transcript goes on from, if that isn't where it stands."""
    notice: str = ""
    """What the gateway says, without asking the agent."""
    focus: str | None = None
    """What a summary of it all is to keep above all; None if none is asked for."""


def begin(run: Run, path: Path) -> Beginning:
    """What the turns of a run come to on the path that they found."""
    first = run.turns[0]
    try:
        match order_of(first):
            case None:
                return Beginning(path, tuple(draft_of(turn) for turn in run.turns))
            case Undo() as undo:
                return _undo(undo, first.person, path)
            case Retry():
                return _retry(first.person, path)
            case Rewind() as rewind:
                return _rewind(rewind, first.person, path)
            case Compress() as compress:
                return _compress(compress, path)
            case other:
                assert_never(other)
    except Refused as refused:
        return Beginning(path, notice=str(refused))


def order_of(turn: Turn) -> Order | None:
    """The order that a turn carries, if it is to move the tip."""
    kind = _ORDERS.get(turn.kind)
    return next((part for part in turn.parts if isinstance(part, kind)), kind()) if kind else None


def far_enough(turn: Turn) -> Enough | None:
    """How far back a turn looks that moves the tip; None if it goes on from the tip."""
    match order_of(turn):
        case Undo(count):
            # One exchange more than it takes back tells where the oldest of them begins.
            return lambda newest: len(exchanges(newest)) > (count or 1)
        case Retry():
            return _covers_retry
        case Rewind(session, n):
            return back_past(Tip(SessionId(session), n))
        case _:
            return None


def _covers_retry(newest: Sequence[Entry]) -> bool:
    starts = exchanges(newest)
    return len(starts) > 1 and covers_summary(newest[: starts[-1]])


def draft_of(turn: Turn) -> Draft:
    """What was asked, with its author."""
    if turn.kind in (TurnKind.ARRIVAL, TurnKind.EDIT):
        return Draft(Author(Role.PERSON, turn.person, turn.name), turn.parts, Source(turn.identity, turn.route))
    if turn.kind in (TurnKind.OPENING, TurnKind.ENDING):
        return Draft(Author(Role.GATEWAY), tuple(Aside(plain_text((part,))) for part in turn.parts))
    return Draft(Author(Role.GATEWAY), tuple(Notice(plain_text((part,))) for part in turn.parts))


def _undo(order: Undo, by: str, path: Path) -> Beginning:
    count = order.count or 1
    to = before_exchange(path, count)
    said = f"Took back the last {count} exchanges." if count > 1 else "Took back the last exchange."
    return Beginning(_upto(path, to), onto=Onto(to, TipMove.UNDO, by), notice=said)


def _retry(by: str, path: Path) -> Beginning:
    to, asked = before_answer(path)
    again = tuple(Draft(entry.author, entry.parts, entry.source) for entry in asked)
    return Beginning(_upto(path, to), again, Onto(to, TipMove.RETRY, by))


def _rewind(order: Rewind, by: str, path: Path) -> Beginning:
    to = Tip(SessionId(order.session), order.n)
    kept = _upto(path, to)
    if not kept:
        raise Refused(Refusal.NO_SUCH_MESSAGE)
    said = "Went back to that message. What came after it is kept: /tree shows it."
    return Beginning(kept, onto=Onto(to, TipMove.REWIND, by), notice=said)


def _compress(order: Compress, path: Path) -> Beginning:
    if path and any(isinstance(part, Summary) for part in path[-1].parts):
        return Beginning(path, notice="Nothing was said since the last summary.")
    if all(entry.author.role is Role.GATEWAY for entry in path):
        return Beginning(path, notice="Nothing was said yet that could be summed up.")
    return Beginning(path, focus=order.focus.strip())


def _upto(path: Path, tip: Tip | None) -> Path:
    """The path as far as an entry; empty if it isn't on it."""
    return next((Path(path[: n + 1]) for n in reversed(range(len(path))) if path[n].tip == tip), Path())
