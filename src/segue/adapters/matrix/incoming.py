"""Batches of the sync, taken event by event into arrivals.

Law: the sync token moves on only after every event before it was accepted; a batch that broke off comes again whole,
and is told by its events' ids.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from segue.adapters.matrix.ciphers import ENCRYPTED, INSTALL, Ciphers, Unread
from segue.adapters.matrix.content import message
from segue.adapters.matrix.events import SEALED, Content, Event, Opened, became, events_in
from segue.adapters.matrix.homeserver import PRIVATE_CHATS, Homeserver, Json
from segue.adapters.matrix.invitations import Invitations
from segue.adapters.matrix.rooms import Room, Rooms
from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import BEGINNING, Attachments, Tries
from segue.adapters.shared.decoding import inside, text_in
from segue.adapters.shared.drawers import Kept
from segue.adapters.shared.lookups import Recent
from segue.core.contracts.adapters import Accept, Files, Unfetched
from segue.core.contracts.lockers import Locker
from segue.core.lanes import Address
from segue.core.messages import Arrival, Citation, File, Text
from segue.core.values import converted
from segue.errors import Disconnected, Invalid, SendError, SendNever

log = logging.getLogger(__name__)

_UNREAD = "I can't read some of what was said here: its keys never came to me. Please write it again."


class Incoming:
    """Takes in what one account's homeserver tells."""

    def __init__(
        self, account: Account, server: Homeserver, files: Files, rooms: Rooms, ways: Invitations, ciphers: Ciphers
    ) -> None:
        self._account = account
        self._server = server
        self._rooms = rooms
        self._invitations = ways
        self._ciphers = ciphers
        self._me = server.user
        self._looked_up: Recent[tuple[str, str], Event] = Recent()
        self._attachments = Attachments(files, server.limits)
        self._tries = Tries()
        self.unread = Unread()
        self._said = Kept("said/", str)

    def remember(self, locker: Locker) -> None:
        for kept in (self._said, self.unread.kept, self._invitations.kept):
            kept.remember(locker)

    async def recall(self, accept: Accept) -> None:
        for kept in (self._said, self.unread, self._invitations.kept):
            await kept.recall()
        # A key may have come just before the end of the life in which it did.
        await self._open({(one.room, one.session) for one in self.unread.kept.values.values()}, accept)

    async def take(self, batch: Json, since: str, accept: Accept) -> None:
        """Take a batch that follows this token; in the first one ever, what was said before isn't answered."""
        if any(inside(event).get("type") == PRIVATE_CHATS for event in events_in(batch, "account_data")):
            self._rooms.forget()
        # What came for the bot's device opens all else.
        if device := await self._ciphers.device():
            await self._open(await device.heed(batch), accept)
        await self._invitations.take(batch, accept)
        for room, joined in inside(batch, "rooms", "join").items() if since else ():
            for raw in (*events_in(joined, "state"), *await self._told(room, inside(joined, "timeline"), since)):
                await self._take_in(room, raw, accept)
        for room in self.unread.overdue:
            await self._say_once(room, "unread", _UNREAD, partial(self._ciphers.put, room, f"unread/{room}"))

    async def _open(self, sessions: Iterable[tuple[str, str]], accept: Accept) -> None:
        """Take in the messages that waited for the keys of these sessions, as far as they are there."""
        device = await self._ciphers.device()
        for room, session in sessions:
            opens = device and await device.ring.room_keys(room, session)
            for name, raw in self.unread.of(room, session) if opens else ():
                await self._take_in(room, raw, accept)
                await self.unread.kept.drop(name)

    async def _take_in(self, room: str, raw: Any, accept: Accept) -> None:
        await self._account.take(self._hear(room, raw, accept), raw, accept)

    async def _told(self, room: str, timeline: Json, since: str) -> list[Any]:
        """All that happened since the token, or since the invitation to a new room; not if it is never told."""
        try:
            events, was = await self._back_to("join", self._server.back(room, timeline, since))
            # What was said between the invitation, which may be older than the token, and its coming is for the agent,
            # too; and so it is where its room went on, since it may have come late.
            if was == "invite" or (was == "" and (await self._rooms.get(room)).former):
                events, _ = await self._back_to("invite", self._server.back(room, timeline))
        except SendError as error:
            if not self._tries.lasts(f"{room}/{since}", error):
                raise
            log.warning("%s: what was missed in %s isn't told (%s)", self._account, room, error)
            return events_in(timeline)
        return events

    async def _back_to(self, membership: str, backwards: AsyncIterator[Any]) -> tuple[list[Any], str | None]:
        """The events since the bot became this, the oldest first, and what it was before; all if it never did."""
        events: list[Any] = []
        async for raw in backwards:
            events.append(raw)
            now, was = became(raw, self._me)
            if now == membership != was:
                return events[::-1], was
        return events[::-1], None

    async def _read(self, room: str, raw: object) -> Event:
        """An event as its sender wrote it; as it came if it is encrypted and there is no key for it."""
        event = converted(raw, Event)
        if event.type != SEALED or event.is_empty or event.sender == self._me or event.state_key is not None:
            return event
        device = await self._ciphers.device()
        clear = await device.opened(room, msgspec.to_builtins(event)) if device else None
        return event if clear is None else converted(clear, Opened)

    async def _hear(self, room: str, raw: object, accept: Accept) -> Arrival | Unfetched | None:
        """The arrival of an event, if the homeserver tells all that it needs within a few tries."""
        event = await self._read(room, raw)
        try:
            if event.state_key is not None:
                await self._state(room, event, accept)
            elif event.sender == self._me or event.is_empty:
                return None
            elif event.type == "m.room.message":
                return await self._arrival(room, event)
            elif event.type == "m.room.redaction":
                return await self._deletion(room, event)
            elif event.type == SEALED and not await self._refuse(room):
                await self.unread.wait(room, msgspec.to_builtins(event))
        except SendError as error:
            if not self._tries.lasts(event.event_id, error):
                raise
            raise Invalid("event", f"the homeserver doesn't tell what it needs ({error})", "See its log.") from error
        return None

    async def _state(self, room: str, event: Event, accept: Accept) -> None:
        self._rooms.heed(room, event)
        if event.type == "m.room.encryption":
            await self._rooms.seal(room, await self._rooms.get(room))
            await self._refuse(room)
        if event.type == "m.room.tombstone":
            await self._invitations.go_along(room, event, accept)

    async def _arrival(self, id: str, event: Event) -> Arrival | Unfetched | None:
        """A message as the gateway knows it; None if it isn't for anybody to answer."""
        content, original = converted(event.content, Content), event
        if edits := event.related("m.replace"):
            edited = await self._look_up(id, edits)
            if edited is None or edited.sender != event.sender or edited.type not in (event.type, SEALED):
                return None  # nobody changes what another person said
            if edited.related("m.replace"):
                return None  # an edit has no edits: each names the message itself, and clients show no others
            original = edited
            if content.new_content is not None:
                content = converted(content.new_content, Content)
        if content.msgtype == "m.notice" or content.automated:
            return None
        room = await self._rooms.get(id)
        if room.encryption is not None and not isinstance(event, Opened):
            if await self._refuse(id):
                return None
            raise Invalid("event", "it came in the clear into an encrypted room", "Nobody knows who wrote it.")
        quotes, thread = original.quotes, original.related("m.thread")
        cited, root = await self._cited(id, quotes), await self._cited(id, thread)
        # The agent may not know what somebody else said.
        others = [cited] if cited is not None and cited.sender != self._me and cited.words else []
        words = tuple(self._unaddressed(part, room) if isinstance(part, Text) else part for part in content.parts)
        named = content.mentions_user(self._me, room.names.get(self._me, ""))
        arrival = self._arrived(
            self._account.address(id, thread),
            room,
            event,
            parts=tuple(replace(part, where="") if isinstance(part, File) else part for part in words),
            cites=tuple(Citation(one.words[:BEGINNING], one.sender, room.names.get(one.sender, "")) for one in others),
            quotes="" if edits else quotes,
            edits=edits,
            mentions_agent=named or any(found is not None and found.sender == self._me for found in (cited, root)),
            chat_aliases=(room.former,) if room.former else (),
        )
        files = [part for part in words if isinstance(part, File)]
        return self._account.unfetched(arrival, lambda: self._fetch(files, content.file), msgspec.to_builtins(event))

    async def _deletion(self, id: str, event: Event) -> Arrival | None:
        """That somebody took a message back: their own, which the gateway knows better than an empty event can say."""
        if not (named := event.redacts or text_in(event.content, "redacts")):
            return None
        deleted = await self._cited(id, named)
        if deleted and deleted.sender == event.sender:
            await self.unread.kept.drop(f"{id}/{named}")
        address = self._account.address(id, deleted.related("m.thread") if deleted else "")
        return self._arrived(address, await self._rooms.get(id), event, parts=(), deletes=named)

    def _arrived(self, address: Address, room: Room, event: Event, **more: Any) -> Arrival:
        speaker = self._account.speaker(event.sender, room.names.get(event.sender, ""))
        at = event.origin_server_ts / 1000
        return Arrival(place=room.place(address), message=event.event_id, speaker=speaker, at=at, **more)

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
        if (room, id) not in self._looked_up:
            with suppress(msgspec.ValidationError, Invalid):
                self._looked_up[room, id] = await self._read(room, await self._server.event(room, id))
        return self._looked_up.get((room, id))

    async def _fetch(self, files: list[File], key: Json | None) -> list[File | str]:
        """The files of a message; one may be on another homeserver, which may be gone for good."""
        device = await self._ciphers.device()
        opened = partial(device.opened_file, key) if device is not None and key is not None else None
        get, find = self._attachments.file, self._server.media
        return [await get(file, file.where, partial(find, file.where), opened) for file in files]

    def _unaddressed(self, text: Text, room: Room) -> Text:
        """A text without the agent's name before it, so that a command stands at its beginning."""
        for name in (self._me, room.names.get(self._me)):
            if name and text.text.startswith((f"{name}:", f"{name},", f"{name} ")):
                return Text(text.text.removeprefix(name).lstrip(":, "))
        return text

    async def _refuse(self, room: str) -> bool:
        """Whether nothing in an encrypted room can be read; it is said there, once."""
        if await self._ciphers.device() is not None:
            return False
        self._ciphers.trouble = self._ciphers.trouble or INSTALL
        if await self._say_once(room, "refused", ENCRYPTED, partial(self._server.send, room, "org.segue.refused")):
            log.warning("%s: %s is encrypted, and isn't answered", self._account, room)
        return True

    async def _say_once(self, room: str, about: str, text: str, send: Callable[[Json], Awaitable[str]]) -> bool:
        """Say something that a room needs to hear but once; whether that was now."""
        if f"{about}/{room}" in self._said.values:
            return False
        try:
            await send(message(text) | {"msgtype": "m.notice"})
        except SendError as error:
            log.warning("%s: %s can't be told so: %s", self._account, room, error)
            if not isinstance(error, SendNever):
                return False  # the next batch brings another try
        await self._said.put(f"{about}/{room}", "said")
        return True
