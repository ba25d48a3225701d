"""The reception of one bot: takes in what the gateway tells, and after a gap what was said meanwhile."""

import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from discord.utils import time_snowflake

from segue.adapters.discord.api import MESSAGES, Api
from segue.adapters.discord.channels import Channels
from segue.adapters.discord.gateway import Event, Gateway
from segue.adapters.discord.incoming import BUTTON, Heard, Incoming
from segue.adapters.discord.payloads import PRIVATE, Attachment, Channel, Guild, Interaction, User, decode, listed
from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import Attachments
from segue.adapters.shared.downloads import Limits, NotFetched, server_of
from segue.core.contracts.adapters import Accept, Files, Intake, Letter
from segue.core.lanes import Kind
from segue.core.messages import File
from segue.errors import SendError, SendNever

log = logging.getLogger(__name__)

_SERVERS = frozenset({("https", "cdn.discordapp.com"), ("https", "media.discordapp.net")})
"""Servers that Discord keeps files on."""
_PAGE, _PAGES = 100, 5
"""Messages of a page, and pages of a channel, that are read back after a gap."""
_MARGIN = 60_000 << 22
"""Ids of a minute: messages of different channels may have been taken in out of their order."""
_CHANNELS = {f"{kind}_{change}" for kind in ("CHANNEL", "THREAD") for change in ("CREATE", "UPDATE", "DELETE")}
_DEFERRED, _UNSEEN, _USED = 5, 6, 7
"""Acknowledgements: of a slash command that is answered later; of a button; of one whose message loses its buttons."""
_EPHEMERAL = 1 << 6


class Reception:
    """Takes events in, for one life of the connection."""

    def __init__(
        self, account: Account, api: Api, channels: Channels, incoming: Incoming, files: Files, me: User
    ) -> None:
        self._account = account
        self._api = api
        self._channels = channels
        self._incoming = incoming
        self._me = me
        self._attachments = Attachments(files, Limits(trusted=api.base))
        self._away: dict[str, int] = {}
        """Guilds that Discord lost for a while, with the newest message before."""
        self._caught_up: set[str] = set()
        """Guilds that were read back since the gateway's session began."""

    async def follow(self, intake: Intake) -> None:
        """Follow the gateway until cancelled."""
        gateway = Gateway(self._api, lambda event: self._take(event, gateway, intake.accept))
        await gateway.follow(intake)

    async def _take(self, event: Event, gateway: Gateway, accept: Accept) -> None:
        about = await self._account.or_letter(_about(event), event.data)
        match event.name, about:
            case _, Letter():
                await accept(about)
            case "READY", _:
                self._caught_up.clear()
                if not gateway.position.seen:
                    # Nothing was ever taken in: it begins now.
                    gateway.position = gateway.position.begun(time_snowflake(datetime.now(UTC)))
                chats = [Channel(chat, PRIVATE) for chat in gateway.position.chats]
                await self._catch_up(chats, gateway.position.since, gateway, accept)
            case "GUILD_CREATE", Guild():
                await self._arrived(about, gateway, accept)
            case "GUILD_DELETE", Guild(unavailable=True):
                self._away[about.id] = gateway.position.seen
            case "GUILD_DELETE", Guild():
                log.warning("%s was removed from the server %s", self._account, about.id)
            case name, Channel():
                self._channels.changed(name, about)
            case name, _:
                await self._hear(name, event.data, gateway, accept)

    async def _arrived(self, guild: Guild, gateway: Gateway, accept: Accept) -> None:
        """A guild is there, or there again."""
        channels = self._channels.of(guild)
        self._incoming.roles |= {role.id for role in guild.roles if role.tags.bot_id == self._me.id}
        since = self._away.pop(guild.id, gateway.position.since)
        if since and (guild.id not in self._caught_up or since != gateway.position.since):
            joined = time_snowflake(guild.joined_at) if guild.joined_at else 0
            await self._catch_up(channels, max(since, joined + _MARGIN), gateway, accept)
        self._caught_up.add(guild.id)

    async def _catch_up(self, channels: Iterable[Channel], since: int, gateway: Gateway, accept: Accept) -> None:
        """Read what was said in channels since a message, and take it in, the oldest first."""
        if not since:
            return
        after, found = since - _MARGIN, list[dict[str, Any]]()
        for channel in channels:
            if channel.is_private or (not channel.is_forum and int(channel.last_message_id or 0) > after):
                found += [{**raw, "guild_id": channel.guild_id} for raw in await self._said_in(channel, after)]
        for raw in sorted(found, key=lambda raw: int(raw["id"])):
            await self._hear("MESSAGE_CREATE", raw, gateway, accept)

    async def _said_in(self, channel: Channel, after: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for _ in range(_PAGES):
            params = {"after": str(after), "limit": _PAGE}
            try:
                told = await self._api.call("GET", MESSAGES, params=params, channel_id=channel.id)
            except SendNever as error:
                log.info("%s: what was said in %s isn't told: %s", self._account, channel.id, error)
                break
            found += (page := listed(told))
            if len(page) < _PAGE:
                break
            after = max(int(raw["id"]) for raw in page)
        return found

    async def _hear(self, name: str, raw: Any, gateway: Gateway, accept: Accept) -> None:
        try:
            heard = await self._account.or_letter(self._incoming.read(name, raw, self._me), raw)
        except SendNever as error:
            # What it needs to know of the channel is never told: it would come again and again.
            heard = self._account.letter(raw, error)
        if isinstance(heard, Letter):
            await accept(heard)
            return
        for one in heard:
            await accept(self._account.unfetched(one.arrival, partial(self._fetch, one.attachments), raw))
            if one.interaction is not None:
                await self._acknowledge(one.interaction, one)
            elif not one.arrival.edits and not one.arrival.deletes:
                place = one.arrival.place
                private = place.kind is Kind.DM
                gateway.position = gateway.position.heard(place.address.chat, int(one.arrival.message), private=private)

    async def _acknowledge(self, done: Interaction, heard: Heard) -> None:
        """Acknowledge a slash command or a button once it is durable; where one person reads, buttons are used up."""
        answer: dict[str, Any] = {"type": _DEFERRED, "data": {"flags": _EPHEMERAL}}
        if done.type == BUTTON:
            alone = heard.arrival.place.kind is Kind.DM or (done.message and done.message.flags & _EPHEMERAL)
            answer = {"type": _USED, "data": {"components": []}} if alone else {"type": _UNSEEN}
        path = "/interactions/{webhook_id}/{webhook_token}/callback"
        try:
            await self._api.call("POST", path, answer, webhook_id=done.id, webhook_token=done.token)
        except SendError as error:
            log.info("a slash command or a button isn't acknowledged: %s", error)

    async def _fetch(self, attachments: Sequence[Attachment]) -> list[File | str]:
        return [await self._attachments.file(file.named, file.url, partial(self._find, file)) for file in attachments]

    async def _find(self, file: Attachment) -> str:
        if server_of(file.url) not in _SERVERS | {server_of(self._api.base)}:
            raise NotFetched("It isn't on a server of Discord's.")
        return file.url


async def _about(event: Event) -> Guild | Channel | None:
    """The guild or the channel that an event tells of."""
    if event.name in {"GUILD_CREATE", "GUILD_DELETE"}:
        return decode(event.data, Guild)
    return decode(event.data, Channel) if event.name in _CHANNELS else None
