"""The bot's ways into rooms and out of them: invitations, rooms that are replaced, and being removed.

Law: an invitation that can't be followed now is kept, and tried again for a week: nobody else waits for it.
"""

import logging
import time
from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec

from segue.adapters.matrix.ciphers import is_installed
from segue.adapters.matrix.events import Event, Told, events_in
from segue.adapters.matrix.homeserver import Homeserver, Json
from segue.adapters.matrix.rooms import Rooms
from segue.adapters.shared.account import Account
from segue.adapters.shared.decoding import inside, listed, text_in, understood
from segue.adapters.shared.drawers import Kept
from segue.core.contracts.adapters import Accept
from segue.core.lanes import Kind
from segue.core.messages import Arrival
from segue.core.values import Moment, Value
from segue.errors import SendError, SendLater

log = logging.getLogger(__name__)

_FIRST_WAIT, _LONGEST_WAIT, _PATIENCE = 60.0, 6 * 3600.0, 7 * 24 * 3600.0
"""Seconds until an invitation is tried again, at first and at most, and until it isn't any more."""


class Asks(StrEnum):
    """Ways in which the bot is asked somewhere."""

    PRIVATE = "private"
    """Somebody begins a private chat."""
    ROOM = "room"
    """Somebody brings it into a room."""
    ONWARD = "onward"
    """A room that it is in goes on there."""


class Invitation(Value, frozen=True):
    """Somebody asks the bot into a room."""

    asks: Asks
    room: str
    by: str
    came: str
    """The id of what it came with."""
    former: str = ""
    """The room that goes on there, as it says itself, or as that one does."""
    since: Moment = 0.0
    """The time of the first try that failed."""
    due: Moment = 0.0
    """The time of the next try."""
    why: str = ""
    """What the last try came to."""


class Invitations:
    """Decides where one bot goes."""

    def __init__(self, account: Account, server: Homeserver, rooms: Rooms, may_invite: Callable[[str], bool]) -> None:
        self._account = account
        self._server = server
        self._rooms = rooms
        self._may_invite = may_invite
        self.kept = Kept("invitation/", Invitation)

    @property
    def troubles(self) -> Sequence[str]:
        told = "it can't join {0.room}, to which {0.by} asked it, and tries again for a week: {0.why}."
        return [told.format(invitation) for invitation in self.kept.values.values()]

    async def take(self, batch: Json, accept: Accept) -> None:
        """Follow the invitations of a batch and those that are due, and forget the rooms that the bot is out of."""
        for room, invited in inside(batch, "rooms", "invite").items():
            told = understood(events_in(invited, "invite_state"), Told, "a room")
            former = next((text_in(e.content, "predecessor", "room_id") for e in told if e.type == "m.room.create"), "")
            for event in told:
                if event.type == "m.room.member" and event.state_key == self._server.user:
                    asks = Asks.PRIVATE if event.content.get("is_direct") is True else Asks.ROOM
                    await self._try(Invitation(asks, room, event.sender, str(batch["next_batch"]), former), accept)
        for room, left in inside(batch, "rooms", "leave").items():
            self._rooms.leave(room)
            for event in understood(events_in(left, "timeline"), Told, "a room"):
                if event.type == "m.room.member" and event.state_key == self._server.user != event.sender:
                    log.warning("%s was removed from %s by %s", self._account, room, event.sender)
            await self.kept.drop(room)
        for invitation in list(self.kept.values.values()):
            if invitation.due <= time.time():
                await self._try(invitation, accept)

    async def go_along(self, old: str, event: Event, accept: Accept) -> None:
        new = event.content.get("replacement_room")
        known = inside(await self._server.call("GET", ("joined_rooms",))).get("joined_rooms")
        if isinstance(new, str) and new not in listed(known):
            await self._try(Invitation(Asks.ONWARD, new, event.sender, event.event_id, old), accept)

    async def _try(self, invitation: Invitation, accept: Accept) -> None:
        try:
            if await self._follow(invitation) and invitation.asks is Asks.ROOM:
                await self._greet(invitation, accept)
        except SendError as error:
            now, room = time.time(), invitation.room
            since = invitation.since or now
            if now - since < _PATIENCE:
                asked = error.seconds if isinstance(error, SendLater) else None
                due = now + (asked or min(max(_FIRST_WAIT, now - since), _LONGEST_WAIT))
                later = msgspec.structs.replace(invitation, since=since, due=due, why=str(error).rstrip("."))
                await self.kept.put(room, later)
                if not invitation.since:
                    log.warning("%s: %s", self._account, self.troubles[-1])
                return
            why = f"to which {invitation.by} asked it a week ago: {error}"
            log.warning("%s: it can't join %s, %s", self._account, room, why)
        await self.kept.drop(invitation.room)

    async def _follow(self, invitation: Invitation) -> bool:
        """Come along, if whoever asks may bring the bot there, or its own room goes on there, as both of them say."""
        asks, room, by = invitation.asks, invitation.room, invitation.by
        may = asks is Asks.PRIVATE or (asks is Asks.ROOM and self._may_invite(by))
        led = asks is Asks.ONWARD or (not may and await self._rooms.agree(invitation.former, room))
        if not may and not led:
            fix = "Name them in its inviters if they may."
            log.warning("%s: %s invited it to %s, and may not. %s", self._account, by, room, fix)
            return False
        via = by.partition(":")[2]
        await self._server.call("POST", ("join", room), {}, {"server_name": via, "via": via})
        if led and (await self._rooms.get(room)).former != invitation.former:
            log.warning("%s: %s sent it to %s, which doesn't continue %s", self._account, by, room, invitation.former)
            self._rooms.leave(room)
            await self._server.call("POST", ("rooms", room, "leave"), {})
            return False
        if asks is Asks.PRIVATE:
            await self._server.mark_private(by, room)
        return True

    async def _greet(self, invitation: Invitation, accept: Accept) -> None:
        """Let the gateway know that somebody brought the bot into a room of several people."""
        room = await self._rooms.get(invitation.room)
        if room.kind is Kind.DM or room.former or (room.encryption is not None and not is_installed()):
            return
        speaker = self._account.speaker(invitation.by, room.names.get(invitation.by, ""))
        place = room.place(self._account.address(invitation.room))
        await accept(Arrival(place, f"invited/{invitation.came}", speaker, (), time.time(), brings_agent=True))
