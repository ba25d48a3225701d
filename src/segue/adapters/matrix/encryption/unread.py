"""Encrypted messages whose key isn't there: they wait for it, for a week."""

import time

import msgspec

from segue.adapters.matrix.events import inside
from segue.adapters.matrix.homeserver import Json
from segue.core.contracts.lockers import Locker, NoLocker, Thing
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
        self.locker: Locker = NoLocker()
        self._waiting: dict[str, UnreadMessage] = {}

    async def recall(self) -> None:
        """Find those that waited before."""
        things = await self.locker.read("unread/")
        self._waiting = {n: msgspec.json.decode(thing.value, type=UnreadMessage) for n, thing in things.items()}
        old = [name for name, one in self._waiting.items() if one.since < time.time() - _LASTS]
        await self._drop(old)

    async def wait(self, room: str, event: Json) -> None:
        """Keep a message until its key comes."""
        name = f"unread/{room}/{event['event_id']}"
        there = [known for known, one in self._waiting.items() if one.room == room]
        if name in self._waiting or len(there) >= _MOST:
            return
        one = UnreadMessage(room, str(inside(event, "content").get("session_id")), event, time.time())
        await self.locker.keep({name: Thing(msgspec.json.encode(one).decode())})
        self._waiting[name] = one

    def of(self, room: str, session: str) -> list[Json]:
        """The messages of a room that a key opens, the oldest first."""
        found = [one.event for one in self._waiting.values() if (one.room, one.session) == (room, session)]
        return sorted(found, key=lambda event: int(event.get("origin_server_ts") or 0))

    async def read(self, room: str, event: Json) -> None:
        """A message was taken in."""
        await self._drop([f"unread/{room}/{event['event_id']}"])

    @property
    def overdue(self) -> set[str]:
        """The rooms in which a message has waited for so long that people should know."""
        return {one.room for one in self._waiting.values() if one.since < time.time() - _PATIENCE}

    @property
    def hurry(self) -> bool:
        """Whether somebody is to be told soon."""
        return any(one.since >= time.time() - 2 * _PATIENCE for one in self._waiting.values())

    async def _drop(self, names: list[str]) -> None:
        if names:
            await self.locker.keep({name: Thing("", 1) for name in names})
        for name in names:
            del self._waiting[name]
