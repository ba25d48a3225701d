"""Slots: how many turns run at once, and whose.

Law: nobody but the host has more than a quarter of the slots, and all the others together leave a quarter to the host.
"""

from __future__ import annotations

from collections import Counter

from segue.core.turns import Room

_SHARE = 4
_NOBODY = "-"


class Slots:
    """Counts the slots that are taken, and by whom."""

    def __init__(self, count: int) -> None:
        self._share = max(1, count // _SHARE)
        self._kept = count // _SHARE
        self._taken: Counter[str] = Counter()
        self.free = count
        """Slots that nobody has; below none while somebody who waited for another session goes on."""
        self.host = ""
        """The host's id as a person, once it is known."""
        self.suspect = False
        """Whether a turn runs that is tried apart."""

    @property
    def open(self) -> int:
        """Slots that may be taken now, be it by the host alone."""
        return self.free - self._kept if self.free > self._kept else self.free

    @property
    def room(self) -> Room:
        """Who may have a slot now."""
        only = (self.host or _NOBODY) if 0 < self.free <= self._kept else ""
        return Room(self._share, dict(self._taken), self.host, only, self.suspect)

    def take(self, person: str) -> None:
        """A slot is this person's from now on."""
        self.free -= 1
        self._taken[person] += 1

    def leave(self, person: str) -> bool:
        """The slot is free; returns whether somebody may wait for it."""
        awaited = self.free <= self._kept or self._taken[person] == self._share
        self.free += 1
        self._taken[person] -= 1
        if not self._taken[person]:
            del self._taken[person]
        return awaited
