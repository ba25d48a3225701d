"""Batches of the sync, taken event by event into arrivals.

Law: the sync token moves on only after every event before it was accepted; a batch that broke off comes again whole,
and is told by its events' ids.
"""

import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from segue.adapters.matrix.content import message
from segue.adapters.matrix.encryption import Ciphers
from segue.adapters.matrix.encryption.unread import Unread
from segue.adapters.matrix.events import SEALED, Content, Event, Opened, Relation, decode, events_in, inside, understood
from segue.adapters.matrix.homeserver import PRIVATE_CHATS, Homeserver, Json
from segue.adapters.matrix.invitations import Invitations
from segue.adapters.matrix.outgoing import ENCRYPTED, Outgoing
from segue.adapters.matrix.rooms import Room, Rooms
from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import BEGINNING, Tries, whole
from segue.core.contracts.adapters import Accept, Files, Unfetched
from segue.core.contracts.lockers import Thing
from segue.core.messages import Arrival, Citation, File, Text
from segue.core.values import converted
from segue.errors import Disconnected, Invalid, SendError, SendNever

log = logging.getLogger(__name__)

_REMEMBERED = 1024
_UNREAD = "I can't read some of what was said here: its keys never came to me. Please write it again."


class Incoming:
    """Takes in what one account's homeserver tells."""

    def __init__(
        self,
        account: Account,
        server: Homeserver,
        rooms: Rooms,
        files: Files,
        invitations: Invitations,
        ciphers: Ciphers,
        outgoing: Outgoing,
    ) -> None:
        self._account = account
        self._ciphers = ciphers
        self._outgoing = outgoing
        self.unread = Unread()
        self.refuses = False
        """Whether somebody speaks in an encrypted room, and can't be read."""
        self._files = files
        self._server = server
        self._rooms = rooms
        self._invitations = invitations
        self._me = server.user
        self._looked_up: OrderedDict[str, Event] = OrderedDict()
        self._tries = Tries()

    async def begin(self, batch: Json, accept: Accept) -> None:
        """Take the first batch ever: what was said before isn't answered, but invitations are."""
        await self._take_keys(batch, accept)
        await self._invitations.take(batch, accept)

    async def take(self, batch: Json, since: str, accept: Accept) -> None:
        """Take a batch that follows this token."""
        if any(inside(event).get("type") == PRIVATE_CHATS for event in events_in(batch, "account_data")):
            self._rooms.forget()
        await self._take_keys(batch, accept)
        await self._invitations.take(batch, accept)
        for room, joined in inside(batch, "rooms", "join").items():
            for event in understood(events_in(joined, "state"), Event):
                await self._take_in(self._heed(room, event, accept), msgspec.to_builtins(event), accept)
            for raw in await self._told(room, inside(joined, "timeline"), since):
                await self._take_in(self._hear(room, raw, accept), raw, accept)

        for room in self.unread.overdue:
            await self._say_once(room, "unread", _UNREAD)

    async def _take_keys(self, batch: Json, accept: Accept) -> None:
        """Take what came for the bot's device before all else, and the messages that waited for it."""
        device = await self._ciphers.device()
        for room, session in await device.heed(batch) if device else []:
            for raw in self.unread.of(room, session):
                await self._take_in(self._hear(room, raw, accept), raw, accept)
                await self.unread.read(room, raw)

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
            await self._rooms.seal(room, await self._rooms.get(room))
            if await self._ciphers.device() is None:
                await self._refuse(room)
        if event.type == "m.room.tombstone":
            await self._invitations.go_along(room, event, accept)

    async def _hear(self, room: str, raw: object, accept: Accept) -> Arrival | Unfetched | None:
        return await self._heed(room, await self._read(room, raw), accept)

    async def _read(self, room: str, raw: object) -> Event:
        """An event as its sender wrote it; as it came if it is encrypted and there is no key for it."""
        event = decode(raw)
        if event.type != SEALED or event.is_empty or event.sender == self._me:
            return event
        device = await self._ciphers.device()
        clear = await device.opened(room, msgspec.to_builtins(event)) if device else None
        return event if clear is None else decode(clear, Opened)

    async def _heed(self, room: str, event: Event, accept: Accept) -> Arrival | Unfetched | None:
        """The arrival of an event, if the homeserver tells all that it needs within a few tries."""
        try:
            if event.state_key is not None:
                await self._state(room, event, accept)
            elif event.sender != self._me and event.type == SEALED and not event.is_empty:
                await self._put_off(room, event)
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
            if edited is None or edited.sender != event.sender or edited.type not in (event.type, SEALED):
                return None  # nobody changes what another person said
            if edited.relation.replaces:
                return None  # an edit has no edits: each names the message itself, and clients show no others
            thread, relation = edited.relation.thread, edited.relation
            if content.new_content is not None:
                content = converted(content.new_content, Content)
        if content.by_a_bot:
            return None
        room = await self._rooms.get(id)
        if room.encrypted and not isinstance(event, Opened):
            if await self._ciphers.device() is None:
                await self._refuse(id)
                return None
            raise Invalid("event", "it came in the clear into an encrypted room", "Nobody knows who wrote it.")
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
        return self._account.unfetched(arrival, lambda: self._fetch(files, content.file), msgspec.to_builtins(event))

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
                event = await self._read(room, raw)
            except (msgspec.ValidationError, Invalid):
                return None
            self._looked_up[id] = event
            if len(self._looked_up) > _REMEMBERED:
                self._looked_up.popitem(last=False)
        return self._looked_up[id]

    async def _fetch(self, files: list[File], key: Json | None) -> list[File | str]:
        """The files of a message; one may be on another homeserver, which may be gone for good."""
        get, keep = self._server.download, partial(self._keep, key)
        return [await self._tries.file(f.name, f.where, get(f.where, partial(keep, f))) for f in files]

    async def _keep(self, key: Json | None, file: File, chunks: AsyncIterator[bytes]) -> File:
        """Keep a file as its sender had it."""
        device = await self._ciphers.device()
        if key is not None and device is not None:
            sealed = b"".join([chunk async for chunk in chunks])
            chunks = whole(await device.opened_file(sealed, key))
        return await self._files.keep(file.name, file.media, chunks)

    def _unaddressed(self, text: Text, room: Room) -> Text:
        """A text without the agent's name before it, so that a command stands at its beginning."""
        for name in (self._me, room.names.get(self._me, "")):
            rest = text.text.removeprefix(name) if name else text.text
            if rest != text.text and rest[:1] in (":", ",", " "):
                return Text(rest.lstrip(":, "))
        return text

    async def _put_off(self, room: str, event: Event) -> None:
        """Let a message that can't be read wait for its key; where none can be read, say so."""
        if await self._ciphers.device() is None:
            await self._refuse(room)
        else:
            await self.unread.wait(room, msgspec.to_builtins(event))

    async def _refuse(self, room: str) -> None:
        """Say once in an encrypted room that nothing there can be read."""
        self.refuses = True
        if await self._said(room, "refused"):
            return
        log.warning("%s: %s is encrypted, and isn't answered", self._account, room)
        notice = {"msgtype": "m.notice", "body": ENCRYPTED, "m.mentions": {}}
        await self._try_to_say(room, "refused", self._server.send(room, "org.segue.refused", notice))

    async def _say_once(self, room: str, about: str, text: str) -> None:
        """Say something that a room needs to hear but once."""
        if not await self._said(room, about):
            key = f"{about}/{room}"
            await self._try_to_say(room, about, self._outgoing.put(room, key, message(text) | {"msgtype": "m.notice"}))

    async def _said(self, room: str, about: str) -> bool:
        name = f"said/{about}/{room}"
        return name in await self.unread.locker.read(name)

    async def _try_to_say(self, room: str, about: str, saying: Awaitable[str]) -> None:
        try:
            await saying
        except SendError as error:
            log.warning("%s: %s can't be told so: %s", self._account, room, error)
            if not isinstance(error, SendNever):
                return  # the next batch brings another try
        await self.unread.locker.keep({f"said/{about}/{room}": Thing("said")})
