"""The ids of a fake platform, by patterns, since each real platform has a format of its own."""

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
"""For each noun the patterns of its ids; several patterns give several ids of one thing.

A pattern is a format string over `n` (a unique number), `here` (a number counted for each chat), `seconds` (the time)
and `message` (the id of the reported message).

A private chat without a pattern has its person's ids. A thread without one has the id of the message that it hangs on.
"""

PLAIN: Patterns = {
    Noun.PERSON: ("u{n}",),
    Noun.DM: ("d{n}",),
    Noun.GROUP: ("g{n}",),
    Noun.MESSAGE: ("m{n}",),
    Noun.EVENT: ("e{n}",),
}


class NewIds:
    """Makes ids from patterns."""

    def __init__(self, patterns: Patterns, clock: Clock) -> None:
        self._patterns = patterns
        self._clock = clock
        self._numbers = itertools.count(1)
        self._here: Counter[str] = Counter()

    def make(self, noun: Noun, chat: str = "", message: str = "") -> tuple[str, ...]:
        """Return new ids for a noun; none if it uses another noun's ids."""
        self._here[chat] += 1
        n, here, seconds = next(self._numbers), self._here[chat], int(self._clock())
        patterns = self._patterns.get(noun, ())
        return tuple(pattern.format(n=n, here=here, seconds=seconds, message=message) for pattern in patterns)
