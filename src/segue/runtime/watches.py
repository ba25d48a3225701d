"""Watches: who looks at a session while it goes on, in this process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from segue.core.values import SessionId, Value


class Changed(Value, frozen=True):
    """Something was said or moved: look at the transcript again."""


class Growing(Value, frozen=True):
    """What the running turn has said so far."""

    turn: int
    text: str


Sight = Changed | Growing


class Watches:
    """Tells those who look at a session what happens there; what they miss they read from the transcript."""

    def __init__(self) -> None:
        self._watchers: dict[SessionId, dict[object, Callable[[Sight], None]]] = defaultdict(dict)

    def watch(self, session: SessionId, see: Callable[[Sight], None]) -> Callable[[], None]:
        """Look at a session; returns how to look away."""
        mark = object()
        self._watchers[session][mark] = see

        def stop() -> None:
            self._watchers[session].pop(mark, None)
            if not self._watchers[session]:
                del self._watchers[session]

        return stop

    def tell(self, session: SessionId, sight: Sight) -> None:
        """Something happened in a session."""
        for see in list(self._watchers[session].values()) if session in self._watchers else ():
            see(sight)
