"""The channels that the bot can see: an event names a channel by its id alone, and a thread's is the thread's own."""

import hashlib
from functools import partial
from typing import Any

from msgspec.structs import replace

from segue.adapters.discord.api import MESSAGE, MESSAGES, Api
from segue.adapters.discord.markup import render
from segue.adapters.discord.payloads import FORUMS, PRIVATE, THREADS, Channel, Guild, decode
from segue.adapters.shared.account import Account
from segue.core.lanes import Address, Kind, Place
from segue.errors import SendNever

_CHANNEL = "/channels/{channel_id}"
_OPEN = f"{_CHANNEL}/threads"
_PUBLIC_THREAD = 11
_WEEK = 10_080
"""Minutes without a word after which a thread is folded away; the longest."""
_LONGEST_TITLE = 100
_HAS_ONE = "(160004)"
"""Discord's word for a message that has a thread already."""
_MOST = 20_000
"""Channels that are remembered: those not heard of for longest are looked up again."""


class Channels:
    """Looks a channel up when it is first needed, and follows what it is called from then on."""

    def __init__(self, account: Account, api: Api) -> None:
        self._account = account
        self._api = api
        self._known: dict[str, Channel] = {}
        self.roles: set[str] = set()
        """The bot's own roles, which people take for its name."""

    async def get(self, id: str) -> Channel:
        """A channel as it is now."""
        if id not in self._known:
            found = decode(await self._api.call("GET", _CHANNEL, channel_id=id), Channel)
            self.heed(replace(found, id=id))
        return self._known[id]

    def heed(self, channel: Channel) -> None:
        """Remember what a channel is now."""
        self._known.pop(channel.id, None)
        self._known[channel.id] = channel
        if len(self._known) > _MOST:
            del self._known[next(iter(self._known))]

    def heed_guild(self, guild: Guild, me: str) -> None:
        """Remember the channels and threads of a guild, which don't name it, and the bot's own role there."""
        for channel in (*guild.channels, *guild.threads):
            self.heed(replace(channel, guild_id=guild.id))
        self.roles |= {role.id for role in guild.roles if role.tags and role.tags.get("bot_id") == me}

    def address(self, channel: Channel) -> Address:
        """The address of a channel; that of a thread has its id twice, since replies there name nothing else."""
        thread = channel.id if channel.type in THREADS else ""
        return self._account.address(channel.id, thread, channel.guild_id)

    async def place(self, id: str, person: str) -> Place:
        """The place of a channel with what is known about it; a private chat is called like its person."""
        channel = await self.get(id)
        address = self.address(channel)
        if channel.type == PRIVATE:
            return Place(address, Kind.DM, person)
        if channel.type not in THREADS:
            return Place(address, Kind.GROUP, channel.name, channel.topic)
        try:
            around = (await self.get(channel.parent_id)).name
        except SendNever:
            around = ""  # the bot sees the thread alone
        parent = self._account.address(channel.parent_id, space=channel.guild_id)
        return Place(address, Kind.GROUP, around, channel.name, parent=parent)

    async def open(self, around: str, title: str, key: str) -> Address:
        """Open a thread in a channel, or a post in a forum; beside a thread, in the channel around it."""
        channel, name = await self.get(around), title[:_LONGEST_TITLE] or "Session"
        if channel.type in THREADS and channel.parent_id:
            channel = await self.get(channel.parent_id)
        if channel.type == PRIVATE:
            raise SendNever("There are no threads in private chats.")
        thread = {"name": name, "auto_archive_duration": _WEEK}
        head: dict[str, Any] = {"content": render(name), "allowed_mentions": {"parse": []}}
        if channel.type in FORUMS:
            raw = await self._api.call("POST", _OPEN, {**thread, "message": head}, channel_id=channel.id)
        else:
            raw = await self._beneath(channel.id, {**head, "nonce": nonce(key), "enforce_nonce": True}, thread)
        opened = decode(raw, Channel)
        self.heed(opened)
        return self.address(opened)

    async def _beneath(self, channel: str, head: dict[str, Any], thread: dict[str, Any]) -> Any:
        """A thread beneath a message, whose id it has: so the same key finds it again; by itself, where none may be."""
        there = partial(self._api.call, "POST", channel_id=channel)
        try:
            root = str((await there(MESSAGES, head))["id"])
        except SendNever:
            return await there(_OPEN, {**thread, "type": _PUBLIC_THREAD})
        try:
            return await there(f"{MESSAGE}/threads", thread, message_id=root)
        except SendNever as error:
            if _HAS_ONE in str(error):
                return await self._api.call("GET", _CHANNEL, channel_id=root)
            await self._api.call("DELETE", MESSAGE, channel_id=channel, message_id=root)
            raise


def nonce(key: str) -> str:
    """The nonce of a key: Discord takes 25 characters."""
    return hashlib.sha256(key.encode()).hexdigest()[:25]
