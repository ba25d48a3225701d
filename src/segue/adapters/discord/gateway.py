"""Discord's gateway: events in their order, and the position up to which they were taken in.

Law: a position is kept only after everything before it was accepted. Within some minutes Discord tells the rest to
whoever resumes there, in this process or in another; after that, what was said meanwhile is read from the channels.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import aiohttp
import discord
import msgspec
import yarl
from discord.gateway import DiscordWebSocket, ReconnectWebSocket
from discord.utils import time_snowflake

from segue.adapters.discord.api import PAGE, PORTAL, SAID_AFTER, STRANGER, Api
from segue.adapters.discord.incoming import Incoming
from segue.adapters.discord.payloads import EVENTS, FORUMS, Guild, listed
from segue.adapters.shared.order import Work, in_order
from segue.core.contracts.adapters import Intake
from segue.core.lanes import Kind
from segue.core.messages import Arrival
from segue.errors import Disconnected, SendNever

log = logging.getLogger(__name__)

_BEGUN, _RESUMED = "READY", "RESUMED"
_KEPT = 100
"""Events after which the position is kept though more wait."""
_CONNECT = 60.0
_PATIENCE = 1.0
"""Seconds that a slash command or a button waits for what came before it: Discord wants it acknowledged in three."""
_CHATS = 200
"""Private chats that are remembered: Discord lists them to no bot."""
_PAGES = 5
"""Pages of a channel that are read back after a gap."""
_MARGIN = 60_000 << 22
"""Ids of a minute: messages of different channels may have been taken in out of their order."""
_REFUSALS = {
    4004: STRANGER,
    4014: f"The bot may not read messages. Turn on Message Content Intent on its page, under Bot, at {PORTAL}.",
}


class Position(msgspec.Struct):
    """How far what came was taken in; it moves."""

    session: str = ""
    url: str = ""
    seq: int = 0
    seen: int = 0
    """The newest message that was taken in."""
    since: int = 0
    """The newest message that was taken in before this session of the gateway's."""
    chats: tuple[str, ...] = ()
    """Private chats, the last used last."""

    def move(self, arrival: Arrival) -> None:
        """Move on past a message; the ids of edits, deletions, slash commands and buttons are no numbers."""
        if arrival.message.isdecimal():
            self.seen, chat = max(self.seen, int(arrival.message)), arrival.place.address.chat
            if arrival.place.kind is Kind.DM:
                self.chats = (*(one for one in self.chats if one != chat), chat)[-_CHATS:]


class Gateway:
    """One bot's connection, made again whenever Discord asks for it."""

    def __init__(self, api: Api, incoming: Incoming) -> None:
        self._api = api
        self._incoming = incoming
        self.position = Position()
        self._came: list[tuple[str, Any]] = []
        """Events that the library has read and nobody has begun to take in."""
        self._away: dict[str, int] = {}
        """Guilds that Discord lost for a while, with the newest message before."""

    async def follow(self, intake: Intake) -> None:
        """Take events in until cancelled; raises `Disconnected` once Discord doesn't take the bot back."""
        at = self.position = msgspec.json.decode(await intake.cursor.read() or "{}", type=Position)
        while True:
            before = at.seq
            try:
                socket = await self._connected()
                try:
                    await in_order(self._works(socket, intake))
                finally:
                    # Any other code than 1000 and 1001 lets whoever comes next resume.
                    await socket.close()
            except ReconnectWebSocket as again:
                if not again.resume and at.session:
                    at.session, at.url, at.seq, at.since = "", "", 0, at.seen
                elif not again.resume or at.seq == before:
                    raise Disconnected("Discord closes the connection again and again.") from again

    async def _connected(self) -> DiscordWebSocket:
        at, client = self.position, await self._api.client()
        heeded = (_BEGUN, _RESUMED, *EVENTS)
        # The one way to events as they came.
        client._connection.parsers = {name: partial(self._tell, name) for name in heeded}  # noqa: SLF001
        self._came.clear()
        url = at.url or str((await self._api.call("GET", "/gateway/bot"))["url"])
        told: dict[str, Any] = {"session": at.session, "sequence": at.seq, "resume": True} if at.session else {}
        try:
            async with asyncio.timeout(_CONNECT):
                return await DiscordWebSocket.from_client(client, initial=True, gateway=yarl.URL(url), **told)
        except (OSError, aiohttp.ClientError, discord.ConnectionClosed) as error:
            if at.url:
                # The server that the session was on may be gone for good: another may know it.
                at.url = ""
                return await self._connected()
            raise Disconnected(f"Discord's gateway can't be reached ({type(error).__name__}).") from error

    def _tell(self, name: str, raw: Any) -> None:
        self._came.append((name, raw))

    async def _works(self, socket: DiscordWebSocket, intake: Intake) -> AsyncIterator[Work]:
        """What there is to do about each event; what somebody has their finger on, soon."""
        while True:
            for name, raw in self._came:
                soon = _PATIENCE if name == "INTERACTION_CREATE" else None
                after = partial(self._keep, socket, intake, name, socket.sequence or 0)
                yield Work(partial(self._take, name, raw), after, soon)
            self._came.clear()
            try:
                await socket.poll_event()
            except discord.ConnectionClosed as error:
                why = _REFUSALS.get(error.code, f"Discord closed the connection ({error.code}).")
                raise Disconnected(why) from error
            except (OSError, aiohttp.ClientError) as error:
                raise ReconnectWebSocket(None) from error

    async def _keep(self, socket: DiscordWebSocket, intake: Intake, name: str, seq: int, waiting: int) -> None:
        """Move the position along; it is kept when nothing more waits, and now and then."""
        at = self.position
        at.session, at.url, at.seq = socket.session_id or "", str(socket.gateway), seq
        if name in {_BEGUN, _RESUMED}:
            intake.connected()
        if not waiting or seq % _KEPT == 0:
            await intake.cursor.keep(msgspec.json.encode(at).decode())

    async def _take(self, name: str, raw: Any) -> None:
        if name == _BEGUN:
            # If nothing was ever taken in, it begins now.
            self.position.seen = self.position.seen or time_snowflake(datetime.now(UTC))
            if self.position.since:
                await self._catch_up(self.position.chats, self.position.since - _MARGIN)
        elif name != _RESUMED:
            match await self._incoming.take(name, raw):
                case Guild() as guild if name == "GUILD_CREATE":
                    await self._arrived(guild)
                case Guild(unavailable=True) as guild:
                    self._away[guild.id] = self.position.seen
                case Guild() as guild:
                    log.warning("the bot was removed from Discord's server %s", guild.id)
                case [*arrivals]:
                    for arrival in arrivals:
                        self.position.move(arrival)

    async def _arrived(self, guild: Guild) -> None:
        """Read back what was said in a guild before it was there, or there again."""
        if since := self._away.pop(guild.id, self.position.since):
            after = max(since - _MARGIN, time_snowflake(guild.joined_at) if guild.joined_at else 0)
            found = (one for one in (*guild.channels, *guild.threads) if one.type not in FORUMS)
            await self._catch_up((one.id for one in found if int(one.last_message_id or 0) > after), after)

    async def _catch_up(self, channels: Iterable[str], after: int) -> None:
        """Read what was said in channels after a message, and take it in, the oldest first."""
        found = [raw for channel in channels async for raw in self._said_in(channel, after)]
        for raw in sorted(found, key=lambda raw: int(raw["id"])):
            await self._take("MESSAGE_CREATE", raw)

    async def _said_in(self, channel: str, after: int) -> AsyncIterator[dict[str, Any]]:
        for _ in range(_PAGES):
            try:
                page = listed(await self._api.call("GET", SAID_AFTER, channel_id=channel, after=str(after)))
            except SendNever as error:
                log.info("what was said in Discord's channel %s isn't told: %s", channel, error)
                return
            for raw in page:
                yield raw
            if len(page) < PAGE:
                return
            after = max(int(raw["id"]) for raw in page)
