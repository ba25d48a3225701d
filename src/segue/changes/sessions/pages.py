"""Pages of a transcript: its end, what came before that, and what is new since somebody looked."""

from collections.abc import Sequence

from segue.changes.sessions.transcripts import path
from segue.core.contracts.database import Transaction
from segue.core.transcripts import Entry, Tip, back_past

_FEW, _MANY = 8, 512
"""Entries that are read at first, and at most, to find those of a turn."""


def newest(tip: Tip | None, count: int) -> Transaction[list[Entry]]:
    """The last entries up to a tip, oldest first; the parent of the first is the tip of the page before."""
    found = yield from path(tip, lambda entries: len(entries) >= count, count)
    return found[-count:]


def since(tip: Tip | None, known: Tip | None, most: int) -> Transaction[list[Entry] | None]:
    """The entries after a known one up to a tip; None if there are more than `most`, or they don't follow it."""
    if tip is None or tip == known:
        return [] if tip == known else None
    # A session numbers its entries as they come, so that their number tells how many may be new.
    new = tip.n - known.n if known is not None and known.session == tip.session else tip.n
    if new < 1:
        return None

    def enough(entries: Sequence[Entry]) -> bool:
        return len(entries) >= most or entries[0].parent == known or (known is not None and back_past(known)(entries))

    found = yield from path(tip, enough, min(new, most))
    return found if found[0].parent == known else None


def of_turn(tip: Tip | None, turn: int) -> Transaction[list[Entry]]:
    """The entries of a turn, which are the last or among the last up to a tip."""

    def enough(entries: Sequence[Entry]) -> bool:
        first = entries[0].turn
        return 0 < first < turn or len(entries) >= _MANY or (first != turn and any(e.turn == turn for e in entries))

    found = yield from path(tip, enough, _FEW)
    return [entry for entry in found if entry.turn == turn and tip is not None and entry.tip.session == tip.session]
