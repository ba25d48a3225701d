"""Discord's gateway: events in their order, and the position up to which they were taken in.

Law: a position is kept only after everything before it was accepted. Within some minutes Discord tells the rest to
whoever resumes there, in this process or in another; after that, what was said meanwhile is read from the channels.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import aiohttp
import discord
import msgspec
import yarl
from discord.gateway import DiscordWebSocket, ReconnectWebSocket

from segue.adapters.discord.api import STRANGER, Api
from segue.adapters.shared.order import Work, in_order
from segue.core.contracts.adapters import Intake
from segue.core.values import Value
from segue.errors import Disconnected

_KEPT = 100
"""Events after which the position is kept though more wait."""
_CONNECT = 60.0
_PATIENCE = 1.0
"""Seconds that a slash command or a button waits for what came before it: Discord wants it acknowledged in three."""
_CHATS = 200
"""Private chats that are remembered: Discord lists them to no bot."""
_REFUSALS = {
    4004: STRANGER,
    4011: "The bot is in too many servers for one connection.",
    4013: "Discord doesn't know what the bot asks to be told.",
    4014: "The bot may not read messages. Turn on Message Content Intent on the page of the bot, under Bot, at "
    "https://discord.com/developers/applications.",
}


class Position(Value, frozen=True):
    """How far what came was taken in."""

    session: str = ""
    url: str = ""
    seq: int = 0
    seen: int = 0
    """The newest message that was taken in."""
    since: int = 0
    """The newest message that was taken in before this session of the gateway's."""
    chats: tuple[str, ...] = ()
    """Private chats, the last used last."""

    def begun(self, now: int) -> "Position":
        """The position of a bot that never heard anything before."""
        return msgspec.structs.replace(self, seen=now)

    def heard(self, chat: str, message: int, *, private: bool) -> "Position":
        """The position after a message in a chat."""
        chats = (*(one for one in self.chats if one != chat), chat)[-_CHATS:] if private else self.chats
        return msgspec.structs.replace(self, seen=max(self.seen, message), chats=chats)


class Event(NamedTuple):
    """Something that Discord tells."""

    name: str
    data: Any
    seq: int


class _Parsers(dict[str, Callable[[Any], None]]):
    """The library's table of what to do with an event: put it in a list."""

    def __init__(self, came: list[tuple[str, Any]]) -> None:
        self._came = came

    def __missing__(self, event: str) -> Callable[[Any], None]:
        return lambda data: self._came.append((event, data))


class Gateway:
    """One bot's connection, made again whenever Discord asks for it."""

    def __init__(self, api: Api, take: Callable[[Event], Awaitable[None]]) -> None:
        self._api = api
        self._take = take
        self.position = Position()

    async def follow(self, intake: Intake) -> None:
        """Take events in until cancelled; raises `Disconnected` once Discord doesn't take the bot back."""
        self.position = _decoded(await intake.cursor.read())
        while True:
            before = self.position.seq
            came: list[tuple[str, Any]] = []
            try:
                socket = await self._connected(came)
                try:
                    await in_order(self._works(socket, came, intake))
                finally:
                    # Any other code than 1000 and 1001 lets whoever comes next resume.
                    await socket.close()
            except ReconnectWebSocket as again:
                if not again.resume and self.position.session:
                    since = self.position.seen
                    self.position = msgspec.structs.replace(self.position, session="", url="", seq=0, since=since)
                elif not again.resume or self.position.seq == before:
                    raise Disconnected("Discord closes the connection again and again.") from again

    async def _connected(self, came: list[tuple[str, Any]]) -> DiscordWebSocket:
        at = self.position
        client = await self._api.client()
        client._connection.parsers = _Parsers(came)  # noqa: SLF001 -- the one way to events as they came
        url = at.url or str((await self._api.call("GET", "/gateway/bot"))["url"])
        told: dict[str, Any] = {"session": at.session, "sequence": at.seq, "resume": True} if at.session else {}
        connect = partial(DiscordWebSocket.from_client, client, initial=True, gateway=yarl.URL(url), **told)
        try:
            async with asyncio.timeout(_CONNECT):
                return await connect()
        except ReconnectWebSocket:
            raise
        except (OSError, aiohttp.ClientError, discord.ConnectionClosed) as error:
            if at.url:
                # The server that the session was on may be gone for good: another may know it.
                self.position = msgspec.structs.replace(at, url="")
                return await self._connected(came)
            raise Disconnected(f"Discord's gateway can't be reached ({type(error).__name__}).") from error

    async def _works(
        self, socket: DiscordWebSocket, came: list[tuple[str, Any]], intake: Intake
    ) -> AsyncIterator[Work]:
        """What there is to do about each event; what somebody has their finger on, soon."""
        while True:
            for name, data in came:
                event = Event(name, data, socket.sequence or 0)
                soon = _PATIENCE if name == "INTERACTION_CREATE" else None
                yield Work(partial(self._take, event), partial(self._keep, socket, intake, event), soon)
            came.clear()
            try:
                await socket.poll_event()
            except discord.ConnectionClosed as error:
                why = _REFUSALS.get(error.code, f"Discord closed the connection ({error.code}).")
                raise Disconnected(why) from error
            except (OSError, aiohttp.ClientError) as error:
                raise ReconnectWebSocket(None) from error

    async def _keep(self, socket: DiscordWebSocket, intake: Intake, event: Event, waiting: int) -> None:
        """Move the position along; it is kept when nothing more waits, and now and then."""
        session, url = socket.session_id or "", str(socket.gateway)
        self.position = msgspec.structs.replace(self.position, session=session, url=url, seq=event.seq)
        if event.name in {"READY", "RESUMED"}:
            intake.connected()
        if not waiting or event.seq % _KEPT == 0:
            await intake.cursor.keep(msgspec.json.encode(self.position).decode())


def _decoded(kept: str) -> Position:
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(kept, type=Position) if kept else Position()
    return Position()
