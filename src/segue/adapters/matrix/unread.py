"""Encrypted messages whose key isn't there: they wait for it, for a week."""

import time
from collections.abc import Iterable

from segue.adapters.matrix.homeserver import Json
from segue.adapters.shared.decoding import inside
from segue.adapters.shared.drawers import Kept
from segue.core.values import Moment, Value

_PATIENCE = 10.0
"""Seconds that a key may take without a word about it: it comes by another way than its message."""
_LASTS = 7 * 24 * 3600.0
_MOST = 100
"""Messages of one room that wait."""


class UnreadMessage(Value, frozen=True):
    """A message that waits for its key."""

    room: str
    session: str
    event: Json
    since: Moment


class Unread:
    """The messages of one account that wait."""

    def __init__(self) -> None:
        self.kept = Kept("unread/", UnreadMessage)

    async def recall(self) -> None:
        """Find those that waited before."""
        await self.kept.recall()
        await self.kept.drop(*(name for name, one in self.kept.values.items() if one.since < time.time() - _LASTS))

    async def wait(self, room: str, event: Json) -> None:
        """Keep a message until its key comes."""
        name, there = f"{room}/{event['event_id']}", [one for one in self._waiting if one.room == room]
        if name not in self.kept.values and len(there) < _MOST:
            session = str(inside(event, "content").get("session_id"))
            await self.kept.put(name, UnreadMessage(room, session, event, time.time()))

    def of(self, room: str, session: str) -> list[Json]:
        """The messages of a room that a key opens, the oldest first."""
        found = [one.event for one in self._waiting if (one.room, one.session) == (room, session)]
        return sorted(found, key=lambda event: int(event.get("origin_server_ts") or 0))

    async def read(self, room: str, event: Json) -> None:
        """A message was taken in."""
        await self.kept.drop(f"{room}/{event['event_id']}")

    @property
    def overdue(self) -> set[str]:
        """The rooms in which a message has waited for so long that people should know."""
        return {one.room for one in self._waiting if one.since < time.time() - _PATIENCE}

    @property
    def hurry(self) -> bool:
        """Whether somebody is to be told soon."""
        return any(one.since >= time.time() - 2 * _PATIENCE for one in self._waiting)

    @property
    def _waiting(self) -> Iterable[UnreadMessage]:
        return self.kept.values.values()
