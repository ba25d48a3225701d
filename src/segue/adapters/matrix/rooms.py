"""The rooms that the bot is in, as far as it has to know them."""

from __future__ import annotations

import msgspec

from segue.adapters.matrix.events import Event, decode
from segue.adapters.matrix.homeserver import Homeserver
from segue.core.lanes import Address, Kind, Place

_PRIVATE = 2
"""The bot and one person."""


class Room:
    """One room: who can read there, and what it is called."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        """Everybody who is in it or invited, with the name that is shown."""
        self.name = ""
        self.topic = ""
        self.encrypted = False

    @property
    def kind(self) -> Kind:
        """Private as long as nobody else can read, whatever somebody has marked it as."""
        return Kind.DM if len(self.names) <= _PRIVATE else Kind.GROUP

    def place(self, address: Address) -> Place:
        """An address in this room with what is known about it."""
        return Place(address, self.kind, self.name, self.topic)

    def heed(self, event: Event) -> None:
        """Something about the room changed."""
        said = event.content
        if event.type == "m.room.member" and event.state_key is not None:
            if said.get("membership") in ("join", "invite"):
                self.names[event.state_key] = _text(said.get("displayname"))
            else:
                self.names.pop(event.state_key, None)
        elif event.type == "m.room.name":
            self.name = _text(said.get("name"))
        elif event.type == "m.room.topic":
            self.topic = _text(said.get("topic"))
        elif event.type == "m.room.encryption":
            self.encrypted = True


class Rooms:
    """Looks a room up when it is first needed, and follows its changes from then on."""

    def __init__(self, server: Homeserver) -> None:
        self._server = server
        self._known: dict[str, Room] = {}

    async def get(self, room: str) -> Room:
        """How a room is now."""
        if room not in self._known:
            found = Room()
            for raw in await self._server.state(room):
                try:
                    found.heed(decode(raw))
                except msgspec.ValidationError:
                    continue  # it says nothing that is needed
            self._known[room] = found
        return self._known[room]

    def heed(self, room: str, event: Event) -> None:
        """Something about a room changed."""
        if room in self._known:
            self._known[room].heed(event)

    def forget(self) -> None:
        """After a time without news, look everything up again."""
        self._known.clear()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
