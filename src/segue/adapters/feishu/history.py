"""Messages that nobody told: read back out of the chats after a time without a connection.

Feishu lists groups to an app and no private chats, so these are remembered. Without the scope for all that is said in
groups, it tells nothing of them.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from segue.adapters.feishu.api import Api
from segue.adapters.feishu.messages import Json, moment
from segue.adapters.shared.account import Account
from segue.adapters.shared.background import Gap
from segue.adapters.shared.decoding import listed, text_in
from segue.core.contracts.adapters import Accept, Arrived, Intake, Unfetched
from segue.core.contracts.database import Clock
from segue.core.lanes import Kind
from segue.core.messages import Arrival
from segue.core.values import Moment, Value
from segue.errors import SendNever

Take = Callable[[Any, Accept], Awaitable[object]]
log = logging.getLogger(__name__)

_PRIVATE, _GROUPS, _THREADS = 100, 40, 10
"""Private chats that are remembered, groups that are looked at, and threads of a chat."""
_OVERLAP = 60.0
"""Seconds before the kept place that are read once more: messages of several chats overtake each other."""


class Position(Value, frozen=True):
    """How far what came was taken in: the time of the newest message, and private chats, the last used last."""

    since: Moment = 0.0
    chats: tuple[str, ...] = ()


class History:
    """What one app has heard, and the way to what it hasn't."""

    def __init__(self, account: Account, api: Api, take: Take, clock: Clock) -> None:
        self._account = account
        self._api = api
        self._take = take
        self._clock = clock
        self._at = Position()
        self._has_met = False
        """Whether there is a private chat that wasn't kept yet."""
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

    def remember(self, arrived: Arrived) -> None:
        """Note where and when something was said; what else happens has the time of another clock."""
        arrival = arrived.arrival if isinstance(arrived, Unfetched) else arrived
        if isinstance(arrival, Arrival) and (arrival.parts or arrival.cites) and not arrival.edits:
            chat, chats = arrival.place.address.chat, self._at.chats
            if arrival.place.kind is Kind.DM:
                self._has_met |= chat not in chats
                chats = (*(one for one in chats if one != chat), chat)[-_PRIVATE:]
            self._at = Position(max(self._at.since, arrival.at), chats)

    async def keep(self, intake: Intake, until: Moment = 0.0) -> None:
        """Keep the place: now and then, and whenever there is a new chat."""
        self._at = replace(self._at, since=max(self._at.since, until))
        place = msgspec.json.encode(self._at).decode()
        if self._gap.is_closed and self._has_met:
            self._has_met = False
            await intake.cursor.keep(place)
        await self._gap.keep(intake.cursor, place)

    async def _missed(self, at: Position) -> list[Json]:
        """What was said and changed since a time in all chats that the app is in, as events, the oldest first."""
        told = await self._api.call("GET", "/im/v1/chats", sort_type="ByActiveTimeDesc", page_size=_GROUPS)
        groups = filter(None, (text_in(one, "chat_id") for one in listed(told.get("items"))))
        found: list[tuple[Moment, Json]] = []
        for chat, kind in {**dict.fromkeys(groups, "group"), **dict.fromkeys(at.chats, "p2p")}.items():
            await self._api.kind(chat, kind)
            try:
                found += [event for raw in await self._in_chat(chat, at.since) for event in _events(raw, at.since)]
            except SendNever as error:
                log.info("%s: what was said in %s isn't told: %s", self._account, chat, error)
        return [event for _, event in sorted(found, key=lambda one: one[0])]

    async def _in_chat(self, chat: str, since: Moment) -> list[Json]:
        """The messages of a chat and of its threads; a thread is known by its root among the newest messages."""
        found = await self._api.newest("chat", chat, since - _OVERLAP)
        threads = dict.fromkeys(filter(None, (text_in(raw, "thread_id") for raw in found)))
        for thread in list(threads)[:_THREADS]:
            found += await self._api.newest("thread", thread, since - _OVERLAP)
        return found


def _events(raw: Json, since: Moment) -> Iterator[tuple[Moment, Json]]:
    """The events that would have told of a message, if it was said or changed since a time."""
    said, changed = moment(raw.get("create_time")), moment(raw.get("update_time")) if raw.get("updated") else 0.0
    if raw.get("deleted"):
        return
    if said > since - _OVERLAP:
        told = {"sender": raw.get("sender") or {}, "message": raw}
        yield said, {"header": {"event_type": "im.message.receive_v1"}, "event": told}
    if said <= since < changed:
        named = {"message": {"message_id": raw.get("message_id")}}
        yield changed, {"header": {"event_type": "im.message.updated_v1"}, "event": named}
