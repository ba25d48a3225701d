"""Caches of recent items and of a platform's answers. A lookup never waits for long."""

import asyncio
import logging
import time
from collections import UserDict
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from segue.core.contracts.database import Clock
from segue.core.values import Moment
from segue.errors import Invalid, SendError

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
log = logging.getLogger(__name__)

_FRESH, _UNKNOWN = 600.0, 30.0
"""Seconds before an answer expires, and before a failed lookup is repeated."""
_PATIENCE = 1.5
"""The longest lookup, in seconds. Some platforms want updates acknowledged within three."""
_MANY = 10_000


class Recent(UserDict[K, V]):
    """A dictionary of limited size; the entry that was set first is dropped."""

    def __init__(self, most: int = 1000) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        self.data.pop(key, None)
        self.data[key] = value
        if len(self.data) > self._most:
            del self.data[next(iter(self.data))]


class Lookups:
    """Cached facts about people, chats and messages of one account."""

    def __init__(self, who: str, clock: Clock = time.monotonic) -> None:
        self._who = who
        self._clock = clock
        self._known: Recent[str, tuple[Moment, Any]] = Recent(_MANY)

    def forget(self, key: str) -> None:
        """Drop a fact that has changed, so that the next lookup asks again."""
        self._known.pop(key, None)

    async def get(self, key: str, ask: Callable[[], Awaitable[T]], otherwise: T) -> T:
        """Return a fact by its key. If the lookup fails, return the last known value."""
        now = self._clock()
        until, last = self._known.get(key, (now, otherwise))
        found: T = last
        if until > now:
            return found
        lasts = _FRESH
        try:
            async with asyncio.timeout(_PATIENCE):
                found = await ask()
        except (SendError, Invalid, TimeoutError) as error:
            log.warning("%s doesn't tell what %s is: %s", self._who, key, str(error) or "it takes too long")
            lasts = _UNKNOWN
        self._known[key] = (now + lasts, found)
        return found
