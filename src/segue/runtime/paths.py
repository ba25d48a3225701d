"""The transcripts that were read last, kept in memory.

Law: entries never change, so neither does the path to a tip; what is kept under a tip is right for ever.
"""

from __future__ import annotations

from collections import OrderedDict

from segue.core.messages import encode_parts
from segue.core.transcripts import Entry, Tip
from segue.runtime.patience import Patient
from segue.store.transcripts import covers_summary, path


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
        self.keep(tip, entries)
        return entries

    def keep(self, tip: Tip, entries: list[Entry], instead_of: Tip | None = None) -> None:
        """Remember a path; the one that it goes on from is not needed again."""
        for old in (tip, instead_of):
            if old is not None and old in self._kept:
                self._size -= self._kept.pop(old)[1]
        size = sum(200 + len(encode_parts(entry.parts)) for entry in entries)
        self._kept[tip] = entries, size
        self._size += size
        while self._size > self._most and self._kept:
            _, (_, gone) = self._kept.popitem(last=False)
            self._size -= gone
