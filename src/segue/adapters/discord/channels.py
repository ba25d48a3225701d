"""The channels that the bot can see: an event names a channel by its id alone, and a thread's is the thread's own."""

from collections.abc import Iterable

from msgspec.structs import replace

from segue.adapters.discord.api import Api
from segue.adapters.discord.payloads import Channel, Guild, decode
from segue.adapters.shared.account import Account
from segue.core.lanes import Address, Kind, Place
from segue.errors import Invalid, SendNever

_MOST = 20_000
"""Channels that are remembered: those not heard of for longest are looked up again."""


class Channels:
    """Looks a channel up when it is first needed, and follows what it is called from then on."""

    def __init__(self, account: Account, api: Api) -> None:
        self._account = account
        self._api = api
        self._known: dict[str, Channel] = {}

    async def get(self, id: str) -> Channel:
        """A channel as it is now."""
        if id not in self._known:
            found = decode(await self._api.call("GET", "/channels/{channel_id}", channel_id=id), Channel)
            if found.id != id:
                raise Invalid("id", f"{found.id!r} isn't the channel that was asked for", "It is looked up again.")
            self.heed([found])
        return self._known[id]

    def heed(self, channels: Iterable[Channel]) -> None:
        """Remember what channels are now."""
        for channel in channels:
            self._known.pop(channel.id, None)
            self._known[channel.id] = channel
        for id in list(self._known)[:-_MOST]:
            del self._known[id]

    def changed(self, event: str, channel: Channel) -> None:
        """Something about a channel or a thread changed."""
        if event.endswith("_DELETE"):
            self._known.pop(channel.id, None)
        else:
            self.heed([channel])

    def of(self, guild: Guild) -> list[Channel]:
        """Remember the channels and threads of a guild; they don't name it."""
        found = [*guild.channels, *guild.threads]
        named = [replace(channel, guild_id=guild.id) for channel in found]
        self.heed(named)
        return named

    def address(self, channel: Channel) -> Address:
        """The address of a channel; that of a thread has its id twice, since replies there name nothing else."""
        thread = channel.id if channel.is_thread else ""
        return self._account.address(channel.id, thread, channel.guild_id)

    async def place(self, id: str, person: str) -> Place:
        """The place of a channel with what is known about it; a private chat is called like its person."""
        channel = await self.get(id)
        address = self.address(channel)
        if channel.is_private:
            return Place(address, Kind.DM, person)
        if not channel.is_thread:
            return Place(address, Kind.GROUP, channel.name, channel.topic)
        parent = self._account.address(channel.parent_id, space=channel.guild_id)
        return Place(address, Kind.GROUP, await self._name(channel), channel.name, parent=parent)

    async def _name(self, thread: Channel) -> str:
        try:
            return (await self.get(thread.parent_id)).name
        except SendNever:
            return ""  # the bot sees the thread alone
