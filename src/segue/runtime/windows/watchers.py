"""Watches: who looks at a session or a lane while it goes on, in this process."""

from collections import defaultdict
from collections.abc import Callable

from segue.core.contracts.wakes import Topic
from segue.core.lanes import Lane
from segue.core.messages import Parts
from segue.core.values import SessionId, Value


class Arrived(Value, frozen=True):
    """Somebody said something or turned to another session: look again; what runs goes on."""


class Changed(Value, frozen=True):
    """A turn is over: look at the transcript again."""


class Forgotten(Value, frozen=True):
    """Something was forgotten: show all anew."""


class HandoffMoved(Value, frozen=True):
    """A handoff from there came a step further, or to its end."""


class SomethingAsked(Value, frozen=True):
    """Somebody is asked something, or is asked it no more."""


class Growing(Value, frozen=True):
    """The answer of the running turn so far."""

    turn: int
    text: str
    """Its words, and below them the doings."""
    parts: Parts = ()
    doing: str = ""
    """What the agent does now, as it says itself."""
    answers: tuple[str, ...] = ()
    """The messages that it answers."""


Sight = Arrived | Changed | Forgotten | HandoffMoved | SomethingAsked | Growing
Watched = SessionId | Lane | Topic
"""Things to look at: a session, a lane, or all that a topic is about."""


class Watches:
    """Tells those who look what happens there; what they miss they read from the transcript."""

    def __init__(self) -> None:
        self._watchers: dict[Watched, dict[object, Callable[[Sight], None]]] = defaultdict(dict)
        self._grown: dict[Watched, Growing] = {}
        """The texts of running turns so far, for a window that opens now."""

    def watch(self, what: Watched, see: Callable[[Sight], None]) -> Callable[[], None]:
        """Look at it; returns how to look away."""
        mark = object()
        if what in self._grown:
            see(self._grown[what])
        self._watchers[what][mark] = see

        def stop() -> None:
            self._watchers[what].pop(mark, None)
            if not self._watchers[what]:
                del self._watchers[what]

        return stop

    def tell_all(self, sight: Sight) -> None:
        """Something happened that may concern anybody."""
        self._grown.clear()
        for watchers in list(self._watchers.values()):
            for see in list(watchers.values()):
                see(sight)

    def tell(self, what: Watched, sight: Sight) -> None:
        """Something happened there."""
        if isinstance(sight, Growing):
            self._grown[what] = sight
        elif isinstance(sight, Changed):
            self._grown.pop(what, None)
        for see in list(self._watchers[what].values()) if what in self._watchers else ():
            see(sight)
