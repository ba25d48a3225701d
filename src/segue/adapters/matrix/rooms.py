"""The rooms that the bot is in, as far as it has to know them."""

from collections import Counter
from contextlib import suppress

from segue.adapters.matrix.events import Event
from segue.adapters.matrix.homeserver import Homeserver, Json
from segue.adapters.shared.decoding import text_in, understood
from segue.adapters.shared.drawers import Drawer
from segue.core.contracts.lockers import Locker, NoLocker
from segue.core.lanes import Address, Kind, Place
from segue.errors import Outdated, SendNever

_PRIVATE = 2
"""The bot and one person."""
_BY_INVITATION = frozenset({"invite", "private", "knock"})


class Room:
    """One room: who can read there, and what it is called."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        """Everybody who is in it or invited, with the name that is shown."""
        self.name = ""
        self.topic = ""
        self.encryption: Json | None = None
        """How what is said there must be encrypted, once it is; that never ends."""
        self.direct = False
        """The bot's account has it marked as a private chat."""
        self.open = False
        """Whoever likes may come in."""
        self.continues = ""
        """The room that it says it stands for."""
        self.goes_on = ""
        """The room that it says stands for it."""
        self.former = ""
        """The room that it stands for, as both say."""
        self.came: set[str] = set()
        """Everybody who ever was in it, in the room that it stands for, or invited."""

    @property
    def kind(self) -> Kind:
        """Private as long as nobody else can read, and nobody else could before unless it is marked as private."""
        alone = len(self.names) <= _PRIVATE and not self.open
        return Kind.DM if alone and (self.direct or len(self.came) <= _PRIVATE) else Kind.GROUP

    def place(self, address: Address) -> Place:
        return Place(address, self.kind, self.name, self.topic)

    def heed(self, event: Event) -> None:
        said = event.content
        match event.type:
            case "m.room.member" if event.state_key is not None:
                self.came.add(event.state_key)
                self.names.pop(event.state_key, None)
                if said.get("membership") in ("join", "invite"):
                    self.names[event.state_key] = text_in(said, "displayname")
            case "m.room.name":
                self.name = text_in(said, "name")
            case "m.room.topic":
                self.topic = text_in(said, "topic")
            case "m.room.encryption":
                self.encryption = {**(self.encryption or {}), **said}
            case "m.room.join_rules":
                self.open = text_in(said, "join_rule") not in _BY_INVITATION
            case "m.room.create":
                self.continues = text_in(said, "predecessor", "room_id")
            case "m.room.tombstone":
                self.goes_on = text_in(said, "replacement_room")
            case _:
                pass


class Rooms:
    """Looks a room up when it is first needed, and follows its changes from then on."""

    def __init__(self, server: Homeserver) -> None:
        self._server = server
        self.remember(NoLocker())
        self._known: dict[str, Room] = {}
        self._direct: frozenset[str] | None = None
        self._news = Counter[str]()
        """How much was told of each room."""

    def remember(self, locker: Locker) -> None:
        self._encrypted = Drawer(locker, "encrypted/")

    async def get(self, room: str, *following: str) -> Room:
        """A room as it is now; into one that stands for another, the same people come one by one."""
        if room not in self._known:
            found, before = Room(), self._news[room]
            for event in understood(await self._server.state(room), Event, "a room"):
                found.heed(event)
            await self.seal(room, found)
            if await self.agree(found.continues, room):
                found.former = found.continues
            if found.former and found.former not in following:
                found.came |= (await self.get(found.former, room, *following)).came
            if self._direct is None:
                self._direct = await self._server.private_chats()
            found.direct = not self._direct.isdisjoint((room, found.former))
            if self._news[room] > before:  # which the answers may not know
                return found
            self._known[room] = found
        return self._known[room]

    async def seal(self, room: str, found: Room) -> None:
        """Remember that a room is encrypted, whatever its homeserver says of it later."""
        kept = (await self._encrypted.read(room)).get(room)
        if kept is not None:
            found.encryption = {**kept, **(found.encryption or {})}
        elif found.encryption is not None:
            with suppress(Outdated):  # somebody else has just done so
                await self._encrypted.keep({room: found.encryption})

    async def agree(self, old: str, new: str) -> bool:
        """Whether a room says that another one, which says that it continues it, stands for it.

        Neither word is enough alone: whoever runs one room could take over a conversation in another.
        """
        return bool(old) and await self._server.goes_on(old) == new

    async def now(self, room: str) -> str:
        """The room in which the conversation of a room goes on: itself, unless it was replaced."""
        passed = {room}
        while (following := (await self.get(room)).goes_on) and following not in passed:
            try:
                if (await self.get(following)).former != room:
                    break
            except SendNever:
                break  # the bot isn't there
            passed.add(room := following)
        return room

    def heed(self, room: str, event: Event) -> None:
        self._news[room] += 1
        if known := self._known.get(room):
            known.heed(event)

    def leave(self, room: str) -> None:
        self._news[room] += 1
        self._known.pop(room, None)

    def forget(self) -> None:
        """After a time without news, look everything up again."""
        self._known.clear()
        self._direct = None
