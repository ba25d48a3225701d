"""Events of Discord's, decoded: the fields that are read, and nothing is trusted to have the right shape."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec

from segue.adapters.shared import decoding
from segue.core.messages import File
from segue.core.values import Plain, Value

V = TypeVar("V", bound=Value)
WRITTEN = (0, 19)
"""Types of messages that somebody wrote: a message and a reply; others tell who joined or what was pinned."""
PRIVATE, THREADS, FORUMS = 1, (10, 11, 12), (15, 16)
"""Types of channels."""
_NUMBER = re.compile(r"[0-9]{1,20}")
Snowflake = Annotated[str, msgspec.Meta(pattern=rf"\A{_NUMBER.pattern}\Z")]
"""An id of Discord's: a number, with the time in it."""


class User(Value, frozen=True):
    id: Snowflake
    username: str = ""
    global_name: str = ""
    bot: bool = False

    @property
    def name(self) -> str:
        return self.global_name or self.username


class Member(Value, frozen=True):
    nick: str = ""
    user: User | None = None


class Attachment(Value, frozen=True):
    filename: str
    url: str
    size: int = 0
    content_type: str = ""

    @property
    def named(self) -> File:
        """The file as long as it isn't fetched."""
        return File(self.filename or "file", self.content_type.partition(";")[0], "", self.size)


class Content(Value, frozen=True):
    """What somebody wrote."""

    content: str = ""
    attachments: tuple[Attachment, ...] = ()
    sticker_items: tuple[dict[str, Plain], ...] = ()

    @property
    def words(self) -> str:
        return self.content or " ".join(f":{sticker.get('name', '')}:" for sticker in self.sticker_items)


class Snapshot(Value, frozen=True):
    """A message as it was when somebody forwarded it."""

    message: Content


class Reference(Value, frozen=True):
    """The message that another one answers or forwards."""

    message_id: Snowflake = ""


class Message(Content, frozen=True, kw_only=True):
    """A message, with all that a text may come with."""

    id: Snowflake
    channel_id: Snowflake
    author: User
    type: int = 0
    flags: int = 0
    member: Member = Member()
    webhook_id: str = ""
    edited_timestamp: str = ""
    mentions: tuple[User, ...] = ()
    mention_roles: tuple[str, ...] = ()
    message_reference: Reference = Reference()
    referenced_message: "Message | None" = None
    message_snapshots: tuple[Snapshot, ...] = ()
    poll: dict[str, Plain] | None = None

    @property
    def name(self) -> str:
        return self.member.nick or self.author.name

    @property
    def forwarded(self) -> Content | None:
        """The message that it passes on."""
        return self.message_snapshots[0].message if self.message_snapshots else None

    @property
    def files(self) -> tuple[Attachment, ...]:
        return (*self.attachments, *(self.forwarded.attachments if self.forwarded else ()))


class Deleted(Value, frozen=True):
    """Messages that are gone."""

    channel_id: Snowflake
    id: Snowflake = ""
    ids: tuple[Snowflake, ...] = ()


class Channel(Value, frozen=True):
    """A channel, a private chat, a forum or a thread."""

    id: Snowflake
    type: int = 0
    guild_id: str = ""
    name: str = ""
    topic: str = ""
    parent_id: Snowflake = ""
    last_message_id: Snowflake = ""


class Choice(Value, frozen=True):
    """The command that was typed, with the words after it, or the button that was pressed."""

    name: str = ""
    options: tuple[dict[str, Plain], ...] = ()
    custom_id: str = ""


class Interaction(Value, frozen=True):
    """A slash command, or a button if there is a message that has it."""

    id: Snowflake
    token: str
    type: int
    data: Choice = Choice()
    channel_id: Snowflake = ""
    channel: Channel | None = None
    guild_id: str = ""
    member: Member = Member()
    user: User | None = None
    message: Message | None = None


class Role(Value, frozen=True):
    """A role in a guild; each bot has one of its own, which people take for its name."""

    id: Snowflake
    tags: dict[str, Plain] | None = None


class Guild(Value, frozen=True):
    """A guild that the bot is in, as it is told when the bot connects."""

    id: Snowflake
    joined_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    unavailable: bool = False
    channels: tuple[Channel, ...] = ()
    threads: tuple[Channel, ...] = ()
    roles: tuple[Role, ...] = ()


Told = Message | Deleted | Interaction | Guild | Channel
EVENTS: Mapping[str, type[Told]] = {
    "MESSAGE_CREATE": Message,
    "MESSAGE_UPDATE": Message,
    "MESSAGE_DELETE": Deleted,
    "MESSAGE_DELETE_BULK": Deleted,
    "INTERACTION_CREATE": Interaction,
    "GUILD_CREATE": Guild,
    "GUILD_DELETE": Guild,
    "CHANNEL_CREATE": Channel,
    "CHANNEL_UPDATE": Channel,
    "THREAD_CREATE": Channel,
    "THREAD_UPDATE": Channel,
}
"""Events that are heeded, each with what it tells of."""


def decode(raw: object, kind: type[V]) -> V:
    """A part of an event from what JSON held; raises `Invalid`."""
    return decoding.decode(raw, kind, "Discord")


def listed(raw: Any) -> list[dict[str, Any]]:
    """Messages of a channel, as Discord lists them, each with its id."""
    found = raw if isinstance(raw, list) else []
    return [one for one in found if isinstance(one, dict) and _NUMBER.fullmatch(str(one.get("id")))]
