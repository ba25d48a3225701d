"""Events, read into arrivals.

What a message can hold and nobody here understands is a letter; what isn't somebody's message to others (who joined,
what was pinned, what a bot said) is nothing.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from discord.utils import snowflake_time

from segue.adapters.discord.channels import Channels
from segue.adapters.discord.payloads import Attachment, Deleted, Interaction, Message, User, decode
from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import BEGINNING
from segue.core.messages import Arrival, Citation, Citing, Pressed, Text
from segue.core.values import Moment, Value
from segue.errors import Invalid

COMMAND, BUTTON = 2, 3


class Heard(Value, frozen=True):
    """A message to the agent: the arrival, and the files that are to be fetched for it."""

    arrival: Arrival
    attachments: tuple[Attachment, ...] = ()
    interaction: Interaction | None = None
    """The slash command or the button that is to be acknowledged."""


class Incoming:
    """Reads what one bot is told."""

    def __init__(self, account: Account, channels: Channels) -> None:
        self._account = account
        self._channels = channels
        self.roles: set[str] = set()
        """The bot's own roles, which people take for its name."""

    async def read(self, event: str, raw: Any, me: User) -> list[Heard]:
        """The messages to the agent in an event; raises `Invalid` for what can't be understood."""
        match event:
            case "MESSAGE_UPDATE" if isinstance(raw, dict) and "author" not in raw:
                return []  # a part of a message, such as a preview, that nobody wrote
            case "MESSAGE_CREATE" | "MESSAGE_UPDATE":
                message = decode(raw, Message)
                heard = await self._said(message, me, edited=event == "MESSAGE_UPDATE")
                return [heard] if heard else []
            case "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK":
                gone = decode(raw, Deleted)
                return [Heard(await self._deleted(gone.channel_id, id)) for id in (gone.id, *gone.ids) if id]
            case "INTERACTION_CREATE":
                return await self._interacted(decode(raw, Interaction))
            case _:
                return []

    async def _said(self, message: Message, me: User, *, edited: bool) -> Heard | None:
        # Discord also tells what it added to a message itself, such as a preview of a link.
        if not message.is_said or message.author.id == me.id or (edited and not message.edited_timestamp):
            return None
        text = _unaddressed(message.words, me)
        if not text and not message.files and not message.forwarded:
            if message.poll is not None:
                raise Invalid("poll", "messages of this kind aren't understood", "Write it in words.")
            return None
        arrival = Arrival(
            place=await self._channels.place(message.channel_id, message.name),
            # An edit keeps the message's id, and mustn't be taken for the message.
            message=f"{message.id}.{message.edited_timestamp}" if edited else message.id,
            speaker=self._account.speaker(message.author.id, message.name),
            parts=(*((Text(text),) if text else ()), *(file.named for file in message.files)),
            at=moment(message.id),
            cites=tuple(_cites(message, me)),
            quotes=message.answered,
            edits=message.id if edited else "",
            mentions_agent=self._mentions(message, me),
        )
        return Heard(arrival, message.files)

    async def _deleted(self, channel: str, id: str) -> Arrival:
        """That a message is gone; Discord doesn't say whose it was, nor by whom."""
        place = await self._channels.place(channel, "")
        return Arrival(place, f"{id}.deleted", self._account.speaker(""), (), moment(id), deletes=id)

    async def _interacted(self, done: Interaction) -> list[Heard]:
        if done.type not in {COMMAND, BUTTON}:
            return []
        user, name = done.by
        if done.channel is not None:
            # Commands are used in channels, too, that the bot can't look up.
            self._channels.heed([msgspec.structs.replace(done.channel, guild_id=done.guild_id)])
        place, speaker = await self._channels.place(done.channel_id, name), self._account.speaker(user, name)
        seen, at = (f"interaction/{done.id}",), moment(done.id)
        if done.type == BUTTON and done.message:
            press = Pressed(done.message.id, done.data.custom_id)
            arrival = Arrival(place, f"button.{done.id}", speaker, (), at, seen_as=seen, pressed=press)
        else:
            said = " ".join([f"/{done.data.name}", *(str(option.value) for option in done.data.options)])
            message = slash_id(done.id, done.token)
            arrival = Arrival(place, message, speaker, (Text(said),), at, seen_as=seen, mentions_agent=True)
        return [Heard(arrival, interaction=done)]

    def _mentions(self, message: Message, me: User) -> bool:
        answered = message.referenced_message
        if answered is not None and message.answered and answered.author.id == me.id:
            return True
        named = any(user.id == me.id for user in message.mentions) or f"<@{me.id}>" in message.content
        return named or not self.roles.isdisjoint(message.mention_roles)


def slash_id(id: str, token: str) -> str:
    """The id of a slash command as a message: with the token by which it is answered, good for 15 minutes.

    So whichever replica answers it can do so unseen by others, also after a crash.
    """
    return f"slash.{id}.{token}"


def slash_token(message: str) -> tuple[str, str] | None:
    """The id and the token of a slash command, if a message was one."""
    kind, _, rest = message.partition(".")
    id, _, token = rest.partition(".")
    return (id, token) if kind == "slash" and id.isdecimal() and token else None


def moment(id: str) -> Moment:
    """The time that an id of Discord's holds."""
    return snowflake_time(int(id)).timestamp()


def _unaddressed(text: str, me: User) -> str:
    """A text without the bot's name before it, so that a command stands at its beginning."""
    return re.sub(rf"^<@!?{me.id}>[\s,:]*", "", text)


def _cites(message: Message, me: User) -> Iterator[Citation]:
    """Words of somebody else: all of a forward, and what is answered if the agent may not know it."""
    if message.forwarded is not None:
        if message.forwarded.content:
            yield Citation(message.forwarded.content, kind=Citing.FORWARD)
        return
    answered = message.referenced_message
    if message.answered and answered is not None and answered.author.id != me.id and answered.words:
        yield Citation(answered.words[:BEGINNING], answered.author.id, answered.name)
