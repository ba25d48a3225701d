"""The ids that a fake platform gives, by patterns: each platform has its own look, and its own traps."""

import itertools
from collections import Counter
from collections.abc import Mapping
from enum import Enum

from segue.core.contracts.database import Clock


class Noun(Enum):
    """A kind of thing that has an id."""

    PERSON = "a person"
    DM = "a private chat"
    GROUP = "a group or channel"
    MESSAGE = "a message"
    THREAD = "a thread"
    EVENT = "the telling of a message"


Patterns = Mapping[Noun, tuple[str, ...]]
"""For each noun the patterns of its ids; more than one means that all of them name the same thing.

A pattern is a format string over `n`, a number that never comes twice, `here`, one that each chat counts for itself,
`seconds`, the time, and `message`, the id of the message that is told. A private chat without a pattern goes by its
person's ids, a thread without one by the message that it hangs on.
"""

PLAIN: Patterns = {
    Noun.PERSON: ("u{n}",),
    Noun.DM: ("d{n}",),
    Noun.GROUP: ("g{n}",),
    Noun.MESSAGE: ("m{n}",),
    Noun.EVENT: ("e{n}",),
}


class NewIds:
    """Makes ids by patterns."""

    def __init__(self, patterns: Patterns, clock: Clock) -> None:
        self._patterns = patterns
        self._clock = clock
        self._numbers = itertools.count(1)
        self._here: Counter[str] = Counter()

    def make(self, noun: Noun, chat: str = "", message: str = "") -> tuple[str, ...]:
        """New ids for a noun; none if it goes by another's."""
        self._here[chat] += 1
        n, here, seconds = next(self._numbers), self._here[chat], int(self._clock())
        patterns = self._patterns.get(noun, ())
        return tuple(pattern.format(n=n, here=here, seconds=seconds, message=message) for pattern in patterns)
