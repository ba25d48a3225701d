"""Events of Discord's, decoded: the fields that are read, and nothing is trusted to have the right shape."""

import re
from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec

from segue.adapters.shared import decoding
from segue.core.messages import File
from segue.core.values import Plain, Value
from segue.errors import Invalid

V = TypeVar("V", bound=Value)
_SAID = (0, 19)
"""Types of messages that somebody wrote: a message and a reply; others tell who joined or what was pinned."""
_FORWARD = 1
_THREADS = (10, 11, 12)
PRIVATE, _FORUMS = 1, (15, 16)
_NUMBER = re.compile(r"[0-9]{1,20}")
Snowflake = Annotated[str, msgspec.Meta(pattern=rf"\A{_NUMBER.pattern}\Z")]
"""An id of Discord's: a number, with the time in it."""


class User(Value, frozen=True):
    """A person or a bot."""

    id: Snowflake
    username: str = ""
    global_name: str = ""
    bot: bool = False

    @property
    def name(self) -> str:
        return self.global_name or self.username


class Member(Value, frozen=True):
    """Somebody in a guild."""

    nick: str = ""
    user: User | None = None


class Attachment(Value, frozen=True):
    """A file."""

    filename: str
    url: str
    size: int = 0
    content_type: str = ""

    @property
    def named(self) -> File:
        """The file as long as it isn't fetched."""
        return File(self.filename or "file", self.content_type.partition(";")[0], "", self.size)


class Sticker(Value, frozen=True):
    """A picture that stands for words."""

    name: str = ""


class Reference(Value, frozen=True):
    """The message that another one answers or forwards."""

    message_id: Snowflake = ""
    type: int = 0


class Snapshot(Value, frozen=True):
    """A message as it was when somebody forwarded it."""

    content: str = ""
    attachments: tuple[Attachment, ...] = ()


class Forwarded(Value, frozen=True):
    """The message in a forward."""

    message: Snapshot


class Message(Value, frozen=True):
    """A message, with all that a text may come with."""

    id: Snowflake
    channel_id: Snowflake
    author: User
    type: int = 0
    member: Member = Member()
    webhook_id: str = ""
    content: str = ""
    edited_timestamp: str = ""
    mentions: tuple[User, ...] = ()
    mention_roles: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    sticker_items: tuple[Sticker, ...] = ()
    message_reference: Reference = Reference()
    referenced_message: "Message | None" = None
    message_snapshots: tuple[Forwarded, ...] = ()
    poll: dict[str, Plain] | None = None

    @property
    def is_said(self) -> bool:
        """Whether a person wrote it: neither a bot, this one included, nor a webhook, nor Discord itself."""
        return self.type in _SAID and not self.author.bot and not self.webhook_id

    @property
    def name(self) -> str:
        return self.member.nick or self.author.name

    @property
    def words(self) -> str:
        return self.content or " ".join(f":{sticker.name}:" for sticker in self.sticker_items)

    @property
    def forwarded(self) -> Snapshot | None:
        """The message that it passes on."""
        passed_on = self.message_reference.type == _FORWARD and self.message_snapshots
        return self.message_snapshots[0].message if passed_on else None

    @property
    def answered(self) -> str:
        """The message that it answers."""
        return self.message_reference.message_id if self.message_reference.type != _FORWARD else ""

    @property
    def files(self) -> tuple[Attachment, ...]:
        return (*self.attachments, *(self.forwarded.attachments if self.forwarded else ()))


class Deleted(Value, frozen=True):
    """Messages that are gone."""

    channel_id: Snowflake
    id: Snowflake = ""
    ids: tuple[Snowflake, ...] = ()


class Option(Value, frozen=True):
    """The words after a slash command."""

    value: str | int | float | bool = ""


class Choice(Value, frozen=True):
    """The command that was typed, or the button that was pressed."""

    name: str = ""
    options: tuple[Option, ...] = ()
    custom_id: str = ""


class Button(Value, frozen=True):
    """The message that has a button."""

    id: Snowflake
    flags: int = 0


class Channel(Value, frozen=True):
    """A channel, a private chat, a forum or a thread."""

    id: Snowflake
    type: int = 0
    guild_id: str = ""
    name: str = ""
    topic: str = ""
    parent_id: Snowflake = ""
    last_message_id: Snowflake = ""

    @property
    def is_thread(self) -> bool:
        return self.type in _THREADS

    @property
    def is_private(self) -> bool:
        return self.type == PRIVATE

    @property
    def is_forum(self) -> bool:
        return self.type in _FORUMS


class Interaction(Value, frozen=True):
    """A slash command or a button."""

    id: Snowflake
    token: str
    type: int
    data: Choice = Choice()
    channel_id: Snowflake = ""
    channel: Channel | None = None
    guild_id: str = ""
    member: Member = Member()
    user: User | None = None
    message: Button | None = None

    @property
    def by(self) -> tuple[str, str]:
        """The id and the name of whoever did it."""
        user = self.user or self.member.user
        if user is None or user.bot:
            raise Invalid("user", "nobody did it", "A slash command or a button has somebody who used it.")
        return user.id, self.member.nick or user.name


class Tags(Value, frozen=True):
    """The bot that a role belongs to."""

    bot_id: str = ""


class Role(Value, frozen=True):
    """A role in a guild; each bot has one of its own, which people take for its name."""

    id: Snowflake
    tags: Tags = Tags()


class Guild(Value, frozen=True):
    """A guild that the bot is in, as it is told when the bot connects."""

    id: Snowflake
    name: str = ""
    joined_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    unavailable: bool = False
    channels: tuple[Channel, ...] = ()
    threads: tuple[Channel, ...] = ()
    roles: tuple[Role, ...] = ()


def decode(raw: object, kind: type[V]) -> V:
    """A part of an event from what JSON held; raises `Invalid`."""
    return decoding.decode(raw, kind, "Discord")


def listed(raw: Any) -> list[dict[str, Any]]:
    """Messages of a channel, as Discord lists them, each with its id."""
    found = raw if isinstance(raw, list) else []
    return [one for one in found if isinstance(one, dict) and _NUMBER.fullmatch(str(one.get("id")))]
