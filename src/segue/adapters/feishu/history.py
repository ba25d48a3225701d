"""Messages that nobody told: read back out of the chats after a time without a connection.

Feishu lists groups to an app and no private chats, so these are remembered. Without the scope for all that is said in
groups, it tells nothing of them.
"""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from segue.adapters.feishu.api import Api
from segue.adapters.feishu.messages import Json
from segue.adapters.shared.account import Account
from segue.adapters.shared.background import Gap
from segue.core.contracts.adapters import Accept, Intake
from segue.core.contracts.database import Clock
from segue.core.lanes import Kind
from segue.core.messages import Arrival
from segue.core.values import Moment, Value
from segue.errors import SendNever

log = logging.getLogger(__name__)

_PRIVATE, _GROUPS, _THREADS = 100, 40, 10
"""Private chats that are remembered, groups that are looked at, and threads of a chat."""
_LEAST = 50
"""Messages of a chat that are looked at, however old they are: one may be the root of a thread that goes on."""
_OVERLAP = 60.0
"""Seconds before the kept place that are read once more: messages of several chats overtake each other."""
_KEEP = 5.0
"""Seconds between two times that the place is kept."""


class Position(Value, frozen=True):
    """How far what came was taken in."""

    since: Moment = 0.0
    """The time of the newest message that was."""
    chats: tuple[str, ...] = ()
    """Private chats, the last used last."""


class History:
    """What one app has heard, and the way to what it hasn't."""

    def __init__(
        self,
        account: Account,
        api: Api,
        take: Callable[[Any, Accept], Awaitable[object]],
        clock: Clock,
    ) -> None:
        self._account = account
        self._api = api
        self._take = take
        self._clock = clock
        self._at = self._kept = Position()
        self._kept_at = -_KEEP
        self._gap = Gap()

    async def catch_up(self, intake: Intake) -> None:
        """Take in what was said while nobody listened: Feishu tells a lost event again for some hours only."""
        at = Position()
        with suppress(msgspec.DecodeError):
            at = msgspec.json.decode(await intake.cursor.read() or "{}", type=Position)
        chats = dict.fromkeys((*at.chats, *self._at.chats))
        # What was said before the first time isn't answered.
        self._at = Position(at.since or self._clock(), tuple(chats)[-_PRIVATE:])
        with self._gap.closing(self._account):
            for event in await self._missed(at) if at.since else ():
                await self._take(event, intake.accept)
        await self.keep(intake)

    async def go_back(self, intake: Intake) -> None:
        """Read back what couldn't be at once."""
        await self._gap.close_later(lambda: self.catch_up(intake))

    def remember(self, arrival: Arrival) -> None:
        """Note where and when something was said; what else happens has the time of another clock."""
        if (arrival.parts or arrival.cites) and not arrival.edits:
            chat, chats = arrival.place.address.chat, self._at.chats
            if arrival.place.kind is Kind.DM:
                chats = (*(one for one in chats if one != chat), chat)[-_PRIVATE:]
            self._at = Position(max(self._at.since, arrival.at), chats)

    async def keep(self, intake: Intake, until: Moment = 0.0) -> None:
        """Keep the place, now and then, if nothing that was said before it is missing."""
        self._at = replace(self._at, since=max(self._at.since, until))
        met = set(self._at.chats) - set(self._kept.chats)
        if self._gap.is_closed and (met or time.monotonic() - self._kept_at >= _KEEP):
            self._kept, self._kept_at = self._at, time.monotonic()
            await intake.cursor.keep(msgspec.json.encode(self._at).decode())

    async def _missed(self, at: Position) -> list[Json]:
        """What was said and changed since a time in all chats that the app is in, as events, the oldest first."""
        groups = await self._api.call("GET", "/im/v1/chats", sort_type="ByActiveTimeDesc", page_size=_GROUPS)
        listed = [str(one.get("chat_id") or "") for one in groups.get("items") or () if isinstance(one, dict)]
        found: list[tuple[Moment, Json]] = []
        for chat, kind in [*((one, "p2p") for one in at.chats), *((one, "group") for one in listed if one)]:
            await self._api.kind(chat, kind)
            try:
                found += [event async for raw in self._in_chat(chat, at.since) for event in _events(raw, at.since)]
            except SendNever as error:
                log.info("%s: what was said in %s isn't told: %s", self._account, chat, error)
        return [event for _, event in sorted(found, key=lambda one: one[0])]

    async def _in_chat(self, chat: str, since: Moment) -> AsyncIterator[Json]:
        """The messages of a chat and of its threads; a thread is known by its root among the newest messages."""
        seen, threads = 0, dict[str, None]()
        async for raw in self._api.newest("chat", chat):
            seen += 1
            if thread := str(raw.get("thread_id") or ""):
                threads[thread] = None
            if _time(raw, "create_time") <= since - _OVERLAP and seen >= _LEAST:
                break
            yield raw
        for thread in list(threads)[:_THREADS]:
            async for raw in self._api.newest("thread", thread):
                if _time(raw, "create_time") <= since - _OVERLAP:
                    break
                yield raw


def _events(raw: Json, since: Moment) -> Iterator[tuple[Moment, Json]]:
    """The events that would have told of a message, if it was said or changed since a time."""
    said, changed = _time(raw, "create_time"), _time(raw, "update_time") if raw.get("updated") else 0.0
    if raw.get("deleted"):
        return
    if said > since - _OVERLAP:
        told = {"sender": raw.get("sender") or {}, "message": raw}
        yield said, {"header": {"event_type": "im.message.receive_v1"}, "event": told}
    if said <= since < changed:
        named = {"message": {"message_id": raw.get("message_id")}}
        yield changed, {"header": {"event_type": "im.message.updated_v1"}, "event": named}


def _time(raw: Json, name: str) -> Moment:
    try:
        return int(raw.get(name) or 0) / 1000
    except (TypeError, ValueError):
        return 0.0
