"""Batches of the sync, taken event by event into arrivals.

Law: the sync token moves on only after every event before it was accepted; a batch that broke off comes again whole,
and is told by its events' ids.
"""

import logging
from collections import OrderedDict
from collections.abc import Awaitable
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from segue.adapters.matrix.events import Content, Event, Relation, decode, events_in, inside, understood
from segue.adapters.matrix.homeserver import PRIVATE_CHATS, Homeserver, Json
from segue.adapters.matrix.invitations import Invitations
from segue.adapters.matrix.rooms import Room, Rooms
from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import BEGINNING, Tries
from segue.core.contracts.adapters import Accept, Files, Unfetched
from segue.core.messages import Arrival, Citation, File, Text
from segue.core.values import converted
from segue.errors import Disconnected, Invalid, SendError, SendNever

log = logging.getLogger(__name__)

_REMEMBERED = 1024
_REFUSED = "org.segue.refused"
ENCRYPTED = "I can't read encrypted rooms. Invite me to a room without encryption, and we can talk there."


class Incoming:
    """Takes in what one account's homeserver tells."""

    def __init__(
        self, account: Account, server: Homeserver, rooms: Rooms, files: Files, invitations: Invitations
    ) -> None:
        self._account = account
        self._files = files
        self._server = server
        self._rooms = rooms
        self._invitations = invitations
        self._me = server.user
        self._looked_up: OrderedDict[str, Event] = OrderedDict()
        self._tries = Tries()

    async def begin(self, batch: Json, accept: Accept) -> None:
        """Take the first batch ever: what was said before isn't answered, but invitations are."""
        await self._invitations.take(batch, accept)

    async def take(self, batch: Json, since: str, accept: Accept) -> None:
        """Take a batch that follows this token."""
        if any(inside(event).get("type") == PRIVATE_CHATS for event in events_in(batch, "account_data")):
            self._rooms.forget()
        await self._invitations.take(batch, accept)
        for room, joined in inside(batch, "rooms", "join").items():
            for event in understood(events_in(joined, "state"), Event):
                await self._take_in(self._heed(room, event, accept), msgspec.to_builtins(event), accept)
            for raw in await self._told(room, inside(joined, "timeline"), since):
                await self._take_in(self._hear(room, raw, accept), raw, accept)

    async def _take_in(self, reading: Awaitable[Arrival | Unfetched | None], raw: object, accept: Accept) -> None:
        """Take one event; what can't be understood is kept as it came."""
        arrived = await self._account.or_letter(reading, raw)
        if arrived is not None:
            await accept(arrived)

    async def _told(self, room: str, timeline: Json, since: str) -> list[Any]:
        """The events of a room since the token; without those before a gap that the homeserver never fills."""
        try:
            return await self._events(room, timeline, since)
        except SendError as error:
            if not self._tries.lasts(room, error):
                raise
            log.warning("%s: what was missed in %s isn't told (%s)", self._account, room, error)
            return events_in(timeline)

    async def _events(self, room: str, timeline: Json, since: str) -> list[Any]:
        """All that happened in a room since the token, the oldest first; in a new room since the invitation."""
        told, gap = events_in(timeline), timeline.get("prev_batch") if timeline.get("limited") else ""
        start = gap if isinstance(gap, str) else ""
        missed = [event async for event in self._server.before(room, start, since)]
        events = [*reversed(missed), *told]
        joined = self._last(events, "join")
        if joined is None:
            return events
        was = decode(events[joined]).before
        # Where its room went on it may have come late: what was said there meanwhile is for the agent, too.
        if was != "invite" and (was or not (await self._rooms.get(room)).former):
            return events[joined:]
        invited = self._last(events[:joined], "invite")
        if invited is not None:
            return events[invited + 1 :]
        # The invitation is older than the token: what was said between the two is for the agent, too.
        earlier: list[Any] = []
        async for event in self._server.before(room, start):
            if self._made_me(event, "invite"):
                break
            earlier.append(event)
        return [*reversed(earlier), *told]

    def _last(self, events: list[Any], membership: str) -> int | None:
        """The place at which the bot last became this."""
        return next((n for n in reversed(range(len(events))) if self._made_me(events[n], membership)), None)

    def _made_me(self, raw: object, membership: str) -> bool:
        try:
            return decode(raw).makes(self._me, membership)
        except msgspec.ValidationError:
            return False

    async def _state(self, room: str, event: Event, accept: Accept) -> None:
        self._rooms.heed(room, event)
        if event.type == "m.room.encryption":
            await self._refuse(room)
        if event.type == "m.room.tombstone":
            await self._invitations.go_along(room, event, accept)

    async def _hear(self, room: str, raw: object, accept: Accept) -> Arrival | Unfetched | None:
        return await self._heed(room, decode(raw), accept)

    async def _heed(self, room: str, event: Event, accept: Accept) -> Arrival | Unfetched | None:
        """The arrival of an event, if the homeserver tells all that it needs within a few tries."""
        try:
            if event.state_key is not None:
                await self._state(room, event, accept)
            elif event.sender != self._me and event.type == "m.room.encrypted":
                await self._refuse(room)
            elif event.sender != self._me and event.type == "m.room.redaction":
                return await self._deletion(room, event)
            elif event.sender != self._me and event.type == "m.room.message" and not event.is_empty:
                return await self._arrival(room, event)
        except SendError as error:
            if not self._tries.lasts(event.event_id, error):
                raise
            raise Invalid("event", f"the homeserver doesn't tell what it needs ({error})", "See its log.") from error
        return None

    async def _arrival(self, id: str, event: Event) -> Arrival | Unfetched | None:
        """A message as the gateway knows it; None if it isn't for anybody to answer."""
        content = event.message()
        relation = content.relates_to or Relation()
        thread = relation.thread
        if relation.replaces:
            edited = await self._look_up(id, relation.replaces)
            if edited is None or edited.sender != event.sender or edited.type != event.type:
                return None  # nobody changes what another person said
            if edited.relation.replaces:
                return None  # an edit has no edits: each names the message itself, and clients show no others
            thread, relation = edited.relation.thread, edited.relation
            if content.new_content is not None:
                content = converted(content.new_content, Content)
        if content.by_a_bot:
            return None
        room = await self._rooms.get(id)
        if room.encrypted:
            await self._refuse(id)
            return None
        edits, answers = event.relation.replaces, relation.quotes
        cited, root = await self._cited(id, answers), await self._cited(id, thread)
        words = tuple(self._unaddressed(part, room) if isinstance(part, Text) else part for part in content.parts)
        named = content.mentions_user(self._me, room.names.get(self._me, ""))
        arrival = Arrival(
            place=room.place(self._account.address(id, thread)),
            message=event.event_id,
            speaker=self._account.speaker(event.sender, room.names.get(event.sender, "")),
            parts=tuple(replace(part, where="") if isinstance(part, File) else part for part in words),
            cites=self._cites(cited, room),
            at=event.origin_server_ts / 1000,
            quotes="" if edits else answers,
            edits=edits,
            mentions_agent=named or any(found is not None and found.sender == self._me for found in (cited, root)),
            chat_aliases=(room.former,) if room.former else (),
        )
        files = [part for part in words if isinstance(part, File)]
        return self._account.unfetched(arrival, lambda: self._fetch(files), msgspec.to_builtins(event))

    async def _deletion(self, id: str, event: Event) -> Arrival | None:
        """That somebody took a message back: their own, which the gateway knows better than an empty event can say."""
        if not event.redacted:
            return None
        room = await self._rooms.get(id)
        deleted = await self._cited(id, event.redacted)
        thread = deleted.relation.thread if deleted else ""
        return Arrival(
            place=room.place(self._account.address(id, thread)),
            message=event.event_id,
            speaker=self._account.speaker(event.sender, room.names.get(event.sender, "")),
            parts=(),
            at=event.origin_server_ts / 1000,
            deletes=event.redacted,
        )

    def _cites(self, found: Event | None, room: Room) -> tuple[Citation, ...]:
        """The words that a message answers, if somebody else said them: the agent may not know those."""
        if found is None or found.sender == self._me:
            return ()
        try:
            text = found.message().text[:BEGINNING]
        except msgspec.ValidationError:
            return ()  # it was taken back, or has no words
        return (Citation(text, found.sender, room.names.get(found.sender, "")),)

    async def _cited(self, room: str, id: str) -> Event | None:
        """The event that a message answers or hangs on; one that the homeserver never tells keeps nobody waiting."""
        try:
            return await self._look_up(room, id) if id else None
        except SendError as error:
            if not self._tries.lasts(id, error):
                raise Disconnected(str(error)) from error
            log.warning("%s: %s isn't told, and what answers it is taken in without it", self._account, id)
            return None

    async def _look_up(self, room: str, id: str) -> Event | None:
        """An event that another one names; None if there is none in this room."""
        if id not in self._looked_up:
            raw = await self._server.event(room, id)
            try:
                event = decode(raw)
            except msgspec.ValidationError:
                return None
            self._looked_up[id] = event
            if len(self._looked_up) > _REMEMBERED:
                self._looked_up.popitem(last=False)
        return self._looked_up[id]

    async def _fetch(self, files: list[File]) -> list[File | str]:
        """The files of a message; one may be on another homeserver, which may be gone for good."""
        get, keep = self._server.download, self._files.keep
        return [await self._tries.file(f.name, f.where, get(f.where, partial(keep, f.name, f.media))) for f in files]

    def _unaddressed(self, text: Text, room: Room) -> Text:
        """A text without the agent's name before it, so that a command stands at its beginning."""
        for name in (self._me, room.names.get(self._me, "")):
            rest = text.text.removeprefix(name) if name else text.text
            if rest != text.text and rest[:1] in (":", ",", " "):
                return Text(rest.lstrip(":, "))
        return text

    async def _refuse(self, room: str) -> None:
        """Say once in an encrypted room that nothing there can be read."""
        if await self._server.marked(room, _REFUSED):
            return
        log.warning("%s: %s is encrypted, and isn't answered", self._account, room)
        try:
            await self._server.send(room, _REFUSED, {"msgtype": "m.notice", "body": ENCRYPTED, "m.mentions": {}})
        except SendNever as error:
            log.warning("%s: %s can't be told so: %s", self._account, room, error)
        await self._server.mark(room, _REFUSED)
