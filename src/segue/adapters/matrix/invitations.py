"""The bot's ways into rooms and out of them: invitations, rooms that are replaced, and being removed."""

import logging
import time
from enum import Enum
from typing import Any

import msgspec

from segue.adapters.matrix.events import Event, events_in, inside, understood
from segue.adapters.matrix.homeserver import Homeserver, Json
from segue.adapters.matrix.rooms import Rooms, before
from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import Tries
from segue.core.contracts.adapters import Accept
from segue.core.lanes import Kind
from segue.core.messages import Arrival
from segue.core.values import Value
from segue.errors import SendError, SendNever

log = logging.getLogger(__name__)


class Inviters(Enum):
    """Who may bring the bot into a room, if it isn't a list."""

    EVERYBODY = "everybody"


class Told(msgspec.Struct, frozen=True):
    """An event that somebody is told who isn't in the room; another homeserver may have written it."""

    type: str
    sender: str
    content: Json
    state_key: str = ""


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


class Invitations:
    """Decides where one bot goes."""

    def __init__(self, account: Account, server: Homeserver, rooms: Rooms, inviters: frozenset[str] | Inviters) -> None:
        self._account = account
        self._name = str(account)
        self._server = server
        self._rooms = rooms
        self._inviters = inviters
        self._tries = Tries()

    async def take(self, batch: Json, accept: Accept) -> None:
        """Follow the invitations of a batch, and forget the rooms that the bot is out of."""
        for room, invited in inside(batch, "rooms", "invite").items():
            told = understood(events_in(invited, "invite_state"), Told)
            former = next((before(event.content) for event in told if event.type == "m.room.create"), "")
            for event in told:
                if event.type == "m.room.member" and event.state_key == self._server.user:
                    await self._take(Invitation(room, event.sender, event.content, former), batch, accept)
        for room, left in inside(batch, "rooms", "leave").items():
            self._removed(room, events_in(left, "timeline"))

    async def _take(self, invitation: Invitation, batch: Json, accept: Accept) -> None:
        try:
            if await self._follow(invitation) and not invitation.is_direct:
                await self._greet(invitation, str(batch["next_batch"]), accept)
        except SendError as error:
            if not self._tries.lasts(f"about {invitation.room}", error):
                raise
            log.warning("%s: what it needs to know of %s isn't told (%s)", self._name, invitation.room, error)

    async def go_along(self, old: str, event: Event) -> None:
        """Go where a room goes on; out again if the new room doesn't say that it continues the old one."""
        new = event.content.get("replacement_room")
        if not isinstance(new, str) or new in await self._server.rooms() or not await self._join(new, event.sender):
            return
        if (await self._rooms.get(new)).former != old:
            log.warning("%s: %s sent it to %s, which doesn't continue %s", self._name, event.sender, new, old)
            self._rooms.leave(new)
            await self._server.leave(new)

    async def _follow(self, invitation: Invitation) -> bool:
        """Come along, if whoever asks may bring the bot there, or its own room goes on there."""
        room, by = invitation.room, invitation.by
        may = invitation.is_direct or self._inviters is Inviters.EVERYBODY or by in self._inviters
        if not may and not await self._rooms.agree(invitation.former, room):
            fix = "Name them in its inviters if they may."
            log.warning("%s: %s invited it to %s, and may not. %s", self._name, by, room, fix)
            return False
        if not await self._join(room, by):
            return False
        if invitation.is_direct:
            await self._server.mark_private(by, room)
        return True

    async def _join(self, room: str, by: str) -> bool:
        try:
            await self._server.join(room, by.partition(":")[2])
        except SendError as error:
            # The room's own homeserver may be gone for good: what it doesn't answer keeps nobody else waiting.
            if not isinstance(error, SendNever) and not self._tries.lasts(room, error):
                raise
            log.warning("%s: it can't join %s, to which %s asks it: %s", self._name, room, by, error)
            return False
        return True

    async def _greet(self, invitation: Invitation, at: str, accept: Accept) -> None:
        """Let the gateway know that somebody brought the bot into a room of several people."""
        room = await self._rooms.get(invitation.room)
        if room.kind is Kind.DM or room.encrypted or room.former:
            return
        speaker = self._account.speaker(invitation.by, room.names.get(invitation.by, ""))
        place = room.place(self._account.address(invitation.room))
        await accept(Arrival(place, f"invited/{at}", speaker, (), time.time(), brings_agent=True))

    def _removed(self, room: str, events: list[Any]) -> None:
        self._rooms.leave(room)
        for event in understood(events, Told):
            if event.type == "m.room.member" and event.state_key == self._server.user != event.sender:
                log.warning("%s was removed from %s by %s", self._name, room, event.sender)
