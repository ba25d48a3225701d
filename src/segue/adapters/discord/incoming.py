"""Events, taken in: what people say and do becomes arrivals, and is acknowledged once it is durable.

What a message can hold and nobody here understands is a letter; what isn't somebody's message to others (who joined,
what was pinned, what a bot said) is nothing.
"""

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from discord.utils import snowflake_time
from msgspec.structs import replace

from segue.adapters.discord.api import Api
from segue.adapters.discord.channels import Channels
from segue.adapters.discord.payloads import EVENTS, WRITTEN, Channel, Deleted, Guild, Interaction, Message, Told, decode
from segue.adapters.shared.account import Account, foreign
from segue.adapters.shared.attachments import BEGINNING, Attachments
from segue.adapters.shared.downloads import NotFetched, server_of
from segue.core.contracts.adapters import Accept, Letter
from segue.core.lanes import Kind
from segue.core.messages import Arrival, Citation, Citing, File, Pressed, Text
from segue.core.values import Moment
from segue.errors import Invalid, SendError, SendNever

log = logging.getLogger(__name__)

_SERVERS = frozenset({("https", "cdn.discordapp.com"), ("https", "media.discordapp.net")})
"""Servers that Discord keeps files on."""
_COMMAND, _BUTTON = 2, 3
_DEFERRED, _UNSEEN, _USED = 5, 6, 7
"""Acknowledgements: of a slash command that is answered later; of a button; of one whose message loses its buttons."""
_EPHEMERAL = 1 << 6


@dataclass(frozen=True)
class Incoming:
    """Takes in what one bot is told, for one life of the connection."""

    account: Account
    api: Api
    channels: Channels
    attachments: Attachments
    me: str
    """The bot's own id."""
    accept: Accept

    async def take(self, event: str, raw: object) -> Guild | list[Arrival]:
        """Take an event in; returns the messages in it, or the guild that it tells of."""
        if event == "MESSAGE_UPDATE" and isinstance(raw, dict) and not raw.get("edited_timestamp"):
            return []  # what Discord added itself, such as a preview of a link
        try:
            read = await self.account.or_letter(self._read(event, raw), raw)
        except SendNever as error:
            # What it needs to know of the channel is never told: it would come again and again.
            read = self.account.letter(raw, error)
        if isinstance(read, Letter):
            await self.accept(read)
            return []
        told, arrivals = read
        for arrival in arrivals:
            await self.accept(self.account.unfetched(arrival, partial(self._fetch, told), raw))
            if isinstance(told, Interaction):
                await self._acknowledge(told, arrival)
        return told if isinstance(told, Guild) else arrivals

    async def _read(self, event: str, raw: object) -> tuple[Told, list[Arrival]]:
        told, arrivals = decode(raw, EVENTS[event]), list[Arrival]()
        match told:
            case Message():
                arrivals = await self._said(told, edited=event == "MESSAGE_UPDATE")
            case Deleted():
                arrivals = [await self._deleted(told, id) for id in (told.id, *told.ids) if id]
            case Interaction():
                arrivals = [await self._interacted(told)] if told.type in {_COMMAND, _BUTTON} else []
            case Channel():
                self.channels.heed(told)
            case Guild():
                self.channels.heed_guild(told, self.me)
        return told, arrivals

    async def _said(self, message: Message, *, edited: bool) -> list[Arrival]:
        if message.type not in WRITTEN or message.author.bot or message.webhook_id:
            return []
        # A command stands at the beginning of a text, also after the bot's name.
        text = re.sub(rf"^<@!?{self.me}>[\s,:]*", "", message.words)
        files = [file.named for file in message.files]
        if not text and not files and not message.forwarded:
            if message.poll is None:
                return []
            files = [foreign("poll")]
        arrival = Arrival(
            place=await self.channels.place(message.channel_id, message.name),
            # An edit keeps the message's id, and mustn't be taken for the message.
            message=f"{message.id}.{message.edited_timestamp}" if edited else message.id,
            speaker=self.account.speaker(message.author.id, message.name),
            parts=(*((Text(text),) if text else ()), *files),
            at=moment(message.id),
            cites=tuple(self._cites(message)),
            quotes="" if message.forwarded else message.message_reference.message_id,
            edits=message.id if edited else "",
            mentions_agent=self._mentions(message),
        )
        return [arrival]

    def _cites(self, message: Message) -> Iterator[Citation]:
        """Words of somebody else: all of a forward, and what is answered if the agent may not know it."""
        forwarded, answered = message.forwarded, message.referenced_message
        if forwarded is not None and forwarded.words:
            yield Citation(forwarded.words, kind=Citing.FORWARD)
        elif answered is not None and answered.author.id != self.me and answered.words:
            yield Citation(answered.words[:BEGINNING], answered.author.id, answered.name)

    def _mentions(self, message: Message) -> bool:
        users = [*message.mentions, *([message.referenced_message.author] if message.referenced_message else ())]
        named = any(user.id == self.me for user in users) or f"<@{self.me}>" in message.content
        return named or not self.channels.roles.isdisjoint(message.mention_roles)

    async def _deleted(self, gone: Deleted, id: str) -> Arrival:
        """That a message is gone; Discord doesn't say whose it was, nor by whom."""
        place = await self.channels.place(gone.channel_id, "")
        return Arrival(place, f"{id}.deleted", self.account.speaker(""), (), moment(id), deletes=id)

    async def _interacted(self, done: Interaction) -> Arrival:
        user = done.user or done.member.user
        if user is None:
            raise Invalid("user", "nobody did it", "A slash command or a button has somebody who used it.")
        if done.channel is not None:
            # Commands are used in channels, too, that the bot can't look up.
            self.channels.heed(replace(done.channel, guild_id=done.guild_id))
        name, at, seen = done.member.nick or user.name, moment(done.id), (f"interaction/{done.id}",)
        place, speaker = await self.channels.place(done.channel_id, name), self.account.speaker(user.id, name)
        if done.message is not None:
            press = Pressed(done.message.id, done.data.custom_id)
            return Arrival(place, f"button.{done.id}", speaker, (), at, seen_as=seen, pressed=press)
        said = " ".join([f"/{done.data.name}", *(str(option.get("value", "")) for option in done.data.options)])
        message = f"slash.{done.id}.{done.token}"
        return Arrival(place, message, speaker, (Text(said),), at, seen_as=seen, mentions_agent=True)

    async def _acknowledge(self, done: Interaction, arrival: Arrival) -> None:
        """Acknowledge a slash command or a button once it is durable; where one person reads, buttons are used up."""
        answer: dict[str, Any] = {"type": _DEFERRED, "data": {"flags": _EPHEMERAL}}
        if done.message is not None:
            alone = arrival.place.kind is Kind.DM or done.message.flags & _EPHEMERAL
            answer = {"type": _USED, "data": {"components": []}} if alone else {"type": _UNSEEN}
        path = "/interactions/{webhook_id}/{webhook_token}/callback"
        try:
            await self.api.call("POST", path, answer, webhook_id=done.id, webhook_token=done.token)
        except SendError as error:
            log.info("a slash command or a button isn't acknowledged: %s", error)

    async def _fetch(self, told: Told) -> list[File | str]:
        files = told.files if isinstance(told, Message) else ()
        return [await self.attachments.file(file.named, file.url, partial(self._find, file.url)) for file in files]

    async def _find(self, url: str) -> str:
        if server_of(url) not in _SERVERS | {server_of(self.api.base)}:
            raise NotFetched("It isn't on a server of Discord's.")
        return url


def slash_token(message: str) -> tuple[str, str] | None:
    """The id and the token of a slash command, if a message was one: by them any replica answers, for 15 minutes."""
    kind, _, rest = message.partition(".")
    id, _, token = rest.partition(".")
    return (id, token) if kind == "slash" and id.isdecimal() and token else None


def moment(id: str) -> Moment:
    """The time that an id of Discord's holds."""
    return snowflake_time(int(id)).timestamp()
