"""Memory of what came last: enough for what is going on, and never more than a number of things."""

from collections import UserDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(UserDict[K, V]):
    """A dictionary of the things that were set last; the oldest is forgotten for one too many."""

    def __init__(self, most: int = 1000) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        self.data.pop(key, None)
        self.data[key] = value
        if len(self.data) > self._most:
            del self.data[next(iter(self.data))]
