"""The bot's ways into rooms and out of them: invitations, rooms that are replaced, and being removed.

Law: an invitation that can't be followed now is kept, and tried again for a week: nobody else waits for it.
"""

import logging
import time
from collections.abc import Sequence
from enum import Enum, StrEnum
from typing import Any

import msgspec

from segue.adapters.matrix.encryption import is_installed
from segue.adapters.matrix.events import Event, events_in, inside, understood
from segue.adapters.matrix.homeserver import Homeserver, Json
from segue.adapters.matrix.rooms import Rooms, before
from segue.adapters.shared.account import Account
from segue.core.contracts.adapters import Accept
from segue.core.contracts.lockers import Locker, NoLocker, Thing
from segue.core.lanes import Kind
from segue.core.messages import Arrival
from segue.core.values import Moment, Value
from segue.errors import SendError, SendLater

log = logging.getLogger(__name__)

_KEPT = "invitation/"
_FIRST_WAIT, _LONGEST_WAIT, _PATIENCE = 60.0, 6 * 3600.0, 7 * 24 * 3600.0
"""Seconds until an invitation is tried again, at first and at most, and until it isn't any more."""


class Inviters(Enum):
    """Who may bring the bot into a room, if it isn't a list."""

    EVERYBODY = "everybody"


class Asks(StrEnum):
    """Ways in which the bot is asked somewhere."""

    PRIVATE = "private"
    """Somebody begins a private chat."""
    ROOM = "room"
    """Somebody brings it into a room."""
    ONWARD = "onward"
    """A room that it is in goes on there."""


class Told(msgspec.Struct, frozen=True):
    """An event that somebody is told who isn't in the room; another homeserver may have written it."""

    type: str
    sender: str
    content: Json
    state_key: str = ""


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
    """The reason why the last one failed."""


class Invitations:
    """Decides where one bot goes."""

    def __init__(self, account: Account, server: Homeserver, rooms: Rooms, inviters: frozenset[str] | Inviters) -> None:
        self._account = account
        self._server = server
        self._rooms = rooms
        self._inviters = inviters
        self.locker: Locker = NoLocker()
        self._kept: dict[str, tuple[Invitation, int]] = {}
        """Invitations that are tried again, by room, each with its version in the locker."""

    @property
    def troubles(self) -> Sequence[str]:
        """The rooms that it can't come into."""
        told = "it can't join {0.room}, to which {0.by} asked it, and tries again for a week: {0.why}."
        return [told.format(invitation) for invitation, _ in self._kept.values()]

    async def recall(self) -> None:
        """Find the invitations that are to be tried again."""
        things = (await self.locker.read(_KEPT)).values()
        known = [(msgspec.json.decode(thing.value, type=Invitation), thing.version) for thing in things]
        self._kept = {invitation.room: (invitation, version) for invitation, version in known}

    async def take(self, batch: Json, accept: Accept) -> None:
        """Follow the invitations of a batch and those that are due, and forget the rooms that the bot is out of."""
        for room, invited in inside(batch, "rooms", "invite").items():
            told = understood(events_in(invited, "invite_state"), Told)
            former = next((before(event.content) for event in told if event.type == "m.room.create"), "")
            for event in told:
                if event.type == "m.room.member" and event.state_key == self._server.user:
                    asks = Asks.PRIVATE if event.content.get("is_direct") is True else Asks.ROOM
                    await self._try(Invitation(asks, room, event.sender, str(batch["next_batch"]), former), accept)
        for room, left in inside(batch, "rooms", "leave").items():
            self._removed(room, events_in(left, "timeline"))
            await self._keep(room, None)
        for invitation, _ in list(self._kept.values()):
            if invitation.due <= time.time():
                await self._try(invitation, accept)

    async def go_along(self, old: str, event: Event, accept: Accept) -> None:
        """Go where a room goes on."""
        new = event.content.get("replacement_room")
        if isinstance(new, str) and new not in await self._server.rooms():
            await self._try(Invitation(Asks.ONWARD, new, event.sender, event.event_id, old), accept)

    async def _try(self, invitation: Invitation, accept: Accept) -> None:
        try:
            if await self._follow(invitation) and invitation.asks is Asks.ROOM:
                await self._greet(invitation, accept)
        except SendError as error:
            now = time.time()
            since = invitation.since or now
            if now - since < _PATIENCE:
                asked = error.seconds if isinstance(error, SendLater) else None
                wait = asked or min(max(_FIRST_WAIT, now - since), _LONGEST_WAIT)
                later = msgspec.structs.replace(invitation, since=since, due=now + wait, why=str(error).rstrip("."))
                await self._keep(invitation.room, later)
                return
            name, room, by = self._account, invitation.room, invitation.by
            log.warning("%s: it can't join %s, to which %s asked it a week ago: %s", name, room, by, error)
        await self._keep(invitation.room, None)

    async def _keep(self, room: str, invitation: Invitation | None) -> None:
        """Try it again later, or no more."""
        _, version = self._kept.get(room, (None, 0))
        if invitation is None and not version:
            return
        value = msgspec.json.encode(invitation).decode() if invitation else ""
        await self.locker.keep({f"{_KEPT}{room}": Thing(value, version)})
        self._kept.pop(room, None)
        if invitation is not None:
            self._kept[room] = invitation, version + 1
            if not version:
                log.warning("%s: %s", self._account, self.troubles[-1])

    async def _follow(self, invitation: Invitation) -> bool:
        """Come along, if whoever asks may bring the bot there, or its own room goes on there, as both of them say."""
        room, by = invitation.room, invitation.by
        known = invitation.asks is Asks.ROOM and (self._inviters is Inviters.EVERYBODY or by in self._inviters)
        may = known or invitation.asks is Asks.PRIVATE
        led = invitation.asks is Asks.ONWARD or (not may and await self._rooms.agree(invitation.former, room))
        if not may and not led:
            fix = "Name them in its inviters if they may."
            log.warning("%s: %s invited it to %s, and may not. %s", self._account, by, room, fix)
            return False
        await self._server.join(room, by.partition(":")[2])
        if led and (await self._rooms.get(room)).former != invitation.former:
            log.warning("%s: %s sent it to %s, which doesn't continue %s", self._account, by, room, invitation.former)
            self._rooms.leave(room)
            await self._server.leave(room)
            return False
        if invitation.asks is Asks.PRIVATE:
            await self._server.mark_private(by, room)
        return True

    async def _greet(self, invitation: Invitation, accept: Accept) -> None:
        """Let the gateway know that somebody brought the bot into a room of several people."""
        room = await self._rooms.get(invitation.room)
        if room.kind is Kind.DM or room.former or (room.encrypted and not is_installed()):
            return
        speaker = self._account.speaker(invitation.by, room.names.get(invitation.by, ""))
        place = room.place(self._account.address(invitation.room))
        await accept(Arrival(place, f"invited/{invitation.came}", speaker, (), time.time(), brings_agent=True))

    def _removed(self, room: str, events: list[Any]) -> None:
        self._rooms.leave(room)
        for event in understood(events, Told):
            if event.type == "m.room.member" and event.state_key == self._server.user != event.sender:
                log.warning("%s was removed from %s by %s", self._account, room, event.sender)
