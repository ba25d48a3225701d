"""The transcripts that were read last, kept in memory.

Law: entries never change, so neither does the path to a tip; what is kept under a tip is right for ever.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from segue.changes.sessions.transcripts import covers_summary, path
from segue.core.messages import encode_parts
from segue.core.transcripts import Entry, Tip
from segue.core.turns import Finish, Finished, Run
from segue.core.values import Moment
from segue.runtime.retrying import Patient


class Paths:
    """What a turn reads before it runs, without asking the database twice."""

    def __init__(self, store: Patient, most: int = 4 * 1024 * 1024) -> None:
        self._store = store
        self._most = most
        self._kept: OrderedDict[Tip, tuple[list[Entry], int]] = OrderedDict()
        self._size = 0

    async def to(self, tip: Tip | None) -> list[Entry]:
        """The path to a tip, as far back as its newest summary needs."""
        if tip is None:
            return []
        kept = self._kept.get(tip)
        if kept is not None:
            self._kept.move_to_end(tip)
            return kept[0]
        entries = await self._store.read(path, tip, covers_summary)
        self._keep(tip, entries, _size(entries))
        return entries

    def go_on(self, before: Sequence[Entry], run: Run, done: Finish, finished: Finished, at: Moment) -> None:
        """A turn that began at the end of `before` was finished: its entries follow."""
        if finished.tip is None or finished.before != (done.onto.tip if done.onto else run.tip):
            return
        added, parent = [], finished.before
        for n, draft in enumerate(done.drafts, finished.tip.n - len(done.drafts) + 1):
            tip = Tip(run.held.session, n)
            added.append(Entry(tip, parent, draft.author, draft.parts, at, run.name, draft.source))
            parent = tip
        size = self._drop(run.tip)
        if not size or done.onto is not None:
            size = _size(before)
        self._keep(finished.tip, [*before, *added], size + _size(added))

    def _keep(self, tip: Tip, entries: list[Entry], size: int) -> None:
        """Remember a path, unless it doesn't go back as far as an agent is told."""
        self._drop(tip)
        if entries and entries[0].parent is not None and not covers_summary(entries):
            return
        self._kept[tip] = entries, size
        self._size += size
        while self._size > self._most:
            self._drop(next(iter(self._kept)))

    def _drop(self, tip: Tip | None) -> int:
        """Forget a path, as one that a turn went on from is not needed again; returns its size."""
        _, size = self._kept.pop(tip, ([], 0)) if tip else ([], 0)
        self._size -= size
        return size


def _size(entries: Sequence[Entry]) -> int:
    return sum(200 + len(encode_parts(entry.parts)) for entry in entries)
