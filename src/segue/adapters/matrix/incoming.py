"""What comes in: batches of the sync, taken event by event into arrivals.

Law: the sync token moves on only after every event before it was accepted; a batch that broke off comes again whole,
and is told by its events' ids.
"""

from __future__ import annotations

import json
import logging
import time
from collections import OrderedDict
from enum import Enum
from functools import partial
from typing import Any

import msgspec

from segue.adapters.download import NotFetched
from segue.adapters.matrix.events import Content, Event, Relation, decode
from segue.adapters.matrix.homeserver import PRIVATE_CHATS, Homeserver, Json
from segue.adapters.matrix.rooms import Room, Rooms, before
from segue.core.contracts import Accept, Files, Letter
from segue.core.lanes import Address, Identity, Kind
from segue.core.messages import Arrival, File, Part, Speaker, Text
from segue.core.values import Value
from segue.errors import SendNever

log = logging.getLogger(__name__)

_REMEMBERED = 1024
_CREATE = "m.room.create"
_REFUSED = "org.segue.refused"
ENCRYPTED = "I can't read encrypted rooms. Invite me to a room without encryption, and we can talk there."


class Inviters(Enum):
    """Who may bring the bot into a room, if it isn't a list."""

    EVERYBODY = "everybody"


class Invitation(Value, frozen=True):
    """Somebody asks the bot into a room."""

    room: str
    by: str
    content: Json
    former: str
    """The room that it says it continues."""

    @property
    def is_direct(self) -> bool:
        """Whether it is to be a private chat."""
        return self.content.get("is_direct") is True


class Incoming:
    """Takes in what one account's homeserver tells."""

    def __init__(
        self, account: str, server: Homeserver, rooms: Rooms, files: Files, inviters: frozenset[str] | Inviters
    ) -> None:
        self._account = account
        self._name = f"matrix.{account}"
        self._files = files
        self._server = server
        self._rooms = rooms
        self._inviters = inviters
        self._me = server.user
        self._space = server.user.partition(":")[2]
        self._looked_up: OrderedDict[str, Event] = OrderedDict()

    async def begin(self, batch: Json, accept: Accept) -> None:
        """Take the first batch ever: what was said before isn't answered, but invitations are."""
        await self._invitations(batch, accept)

    async def take(self, batch: Json, since: str, accept: Accept) -> None:
        """Take a batch that follows this token."""
        if any(event.get("type") == PRIVATE_CHATS for event in batch.get("account_data", {}).get("events", [])):
            self._rooms.forget()
        await self._invitations(batch, accept)
        for room, left in batch.get("rooms", {}).get("leave", {}).items():
            self._removed(room, left.get("timeline", {}).get("events", []))
        for room, joined in batch.get("rooms", {}).get("join", {}).items():
            for raw in joined.get("state", {}).get("events", []):
                await self._state(room, raw)
            for raw in await self._events(room, joined.get("timeline", {}), since):
                await self._hear(room, raw, accept)

    async def _invitations(self, batch: Json, accept: Accept) -> None:
        for room, invited in batch.get("rooms", {}).get("invite", {}).items():
            told = invited.get("invite_state", {}).get("events", [])
            former = next((before(event.get("content", {})) for event in told if event.get("type") == _CREATE), "")
            for event in told:
                if event.get("type") == "m.room.member" and event.get("state_key") == self._me:
                    invitation = Invitation(room, str(event.get("sender")), event.get("content", {}), former)
                    if await self._follow(invitation) and not invitation.is_direct:
                        await self._greet(invitation, str(batch["next_batch"]), accept)

    async def _follow(self, invitation: Invitation) -> bool:
        """Come along, if whoever asks may bring the bot there."""
        room, by = invitation.room, invitation.by
        may = invitation.is_direct or self._inviters is Inviters.EVERYBODY or by in self._inviters
        # Where its room goes on, it goes too.
        if not may and not await self._rooms.agree(invitation.former, room):
            log.warning(
                "%s: %s invited it to %s, and may not. Name them in its inviters if they may.", self._name, by, room
            )
            return False
        if not await self._join(room, by):
            return False
        if invitation.is_direct:
            await self._server.mark_private(by, room)
        return True

    async def _join(self, room: str, by: str) -> bool:
        try:
            await self._server.join(room, by.partition(":")[2])
        except SendNever as error:
            log.warning("%s: it can't join %s, to which %s asks it: %s", self._name, room, by, error)
            return False
        return True

    async def _greet(self, invitation: Invitation, at: str, accept: Accept) -> None:
        """Let the gateway know that somebody brought the bot into a room of several people."""
        room = await self._rooms.get(invitation.room)
        if room.kind is Kind.DM or room.encrypted or room.former:
            return
        speaker = Speaker(Identity("matrix", self._account, invitation.by), room.names.get(invitation.by, ""))
        place = room.place(Address("matrix", self._account, self._space, invitation.room))
        await accept(Arrival(place, f"invited/{at}", speaker, (), time.time(), brings_agent=True))

    def _removed(self, room: str, events: list[Any]) -> None:
        self._rooms.leave(room)
        for raw in events:
            try:
                event = decode(raw)
            except msgspec.ValidationError:
                continue  # that the bot is out is known without it
            if event.state_key == self._me and event.sender != self._me and event.type == "m.room.member":
                log.warning("%s was removed from %s by %s", self._name, room, event.sender)

    async def _go_along(self, old: str, event: Event) -> None:
        """Go where a room goes on; out again if the new room doesn't say that it continues the old one."""
        new = event.content.get("replacement_room")
        if not isinstance(new, str) or new in await self._server.rooms() or not await self._join(new, event.sender):
            return
        if (await self._rooms.get(new)).former != old:
            log.warning("%s: %s sent it to %s, which doesn't continue %s", self._name, event.sender, new, old)
            self._rooms.leave(new)
            await self._server.leave(new)

    async def _events(self, room: str, timeline: Json, since: str) -> list[Any]:
        """All that happened in a room since the token, the oldest first; in a new room since the invitation."""
        told = list(timeline.get("events", []))
        start = str(timeline.get("prev_batch", "")) if timeline.get("limited") else ""
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
        """Where the bot last became this."""
        return next((n for n in reversed(range(len(events))) if self._made_me(events[n], membership)), None)

    def _made_me(self, raw: object, membership: str) -> bool:
        try:
            return decode(raw).makes(self._me, membership)
        except msgspec.ValidationError:
            return False

    async def _state(self, room: str, raw: object) -> None:
        try:
            event = decode(raw)
        except msgspec.ValidationError:
            return  # what a room is like is looked up when it is needed
        self._rooms.heed(room, event)
        if event.type == "m.room.encryption":
            await self._refuse(room)
        if event.type == "m.room.tombstone":
            await self._go_along(room, event)

    async def _hear(self, room: str, raw: object, accept: Accept) -> None:
        """Take one event; what can't be understood is kept as it came."""
        try:
            event = decode(raw)
            if event.state_key is not None:
                await self._state(room, raw)
                return
            if event.sender == self._me:
                return
            if event.type == "m.room.encrypted":
                await self._refuse(room)
                return
            arrival = None
            if event.type == "m.room.message" and not event.is_empty:
                arrival = await self._arrival(room, event)
        except msgspec.ValidationError as error:
            await accept(Letter("matrix", self._account, json.dumps(raw), str(error)))
            return
        if arrival is not None:
            await accept(arrival)

    async def _arrival(self, id: str, event: Event) -> Arrival | None:
        """A message as the gateway knows it; None if it isn't for anybody to answer."""
        content = event.message()
        relation = content.relates_to or Relation()
        thread = relation.thread
        if relation.replaces:
            edited = await self._look_up(id, relation.replaces)
            if edited is None or edited.sender != event.sender or edited.type != event.type:
                return None  # nobody changes what another person said
            thread, relation = edited.relation.thread, edited.relation
            if content.new_content is not None:
                content = msgspec.convert(content.new_content, Content)
        if content.by_a_bot:
            return None
        room = await self._rooms.get(id)
        if room.encrypted:
            await self._refuse(id)
            return None
        edits = event.relation.replaces
        quotes = "" if edits else relation.quotes
        parts = [await self._taken(part, room) for part in content.parts]
        named = content.mentions_user(self._me, room.names.get(self._me, ""))
        return Arrival(
            place=room.place(Address("matrix", self._account, self._space, id, thread)),
            message=event.event_id,
            speaker=Speaker(Identity("matrix", self._account, event.sender), room.names.get(event.sender, "")),
            parts=tuple(parts),
            at=event.origin_server_ts / 1000,
            quotes=quotes,
            edits=edits,
            mentions_agent=named or await self._mine(id, quotes) or await self._mine(id, thread),
            chat_aliases=(room.former,) if room.former else (),
        )

    async def _mine(self, room: str, event: str) -> bool:
        """Whether the agent wrote a message."""
        found = await self._look_up(room, event) if event else None
        return found is not None and found.sender == self._me

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

    async def _taken(self, part: Part, room: Room) -> Part:
        """A part as it is kept: a text without the agent's name, a file in the data folder."""
        match part:
            case Text():
                return self._unaddressed(part, room)
            case File():
                try:
                    return await self._server.download(part.where, partial(self._files.keep, part.name, part.media))
                except NotFetched as error:
                    return Text(f"({part.name} couldn't be taken in. {error})")
            case _:
                return part

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
        log.warning("%s: %s is encrypted, and isn't answered", self._name, room)
        try:
            await self._server.send(room, _REFUSED, {"msgtype": "m.notice", "body": ENCRYPTED, "m.mentions": {}})
        except SendNever as error:
            log.warning("%s: %s can't be told so: %s", self._name, room, error)
        await self._server.mark(room, _REFUSED)
