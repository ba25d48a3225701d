"""What Telegram tells, decoded: of each update as much as is needed, and nothing is trusted to have the right shape."""

from typing import Any

import msgspec

from segue.core.messages import File, Telling
from segue.core.values import Plain, Value
from segue.errors import Invalid

_IN = ("creator", "administrator", "member")


class User(Value, frozen=True):
    """A person or a bot."""

    id: int
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}".strip()


class Chat(Value, frozen=True):
    """A private chat, a group or a channel."""

    id: int
    type: str
    title: str = ""


class Entity(Value, frozen=True):
    """A stretch of a text that means something, counted in UTF-16."""

    type: str
    offset: int
    length: int
    user: User | None = None


class Attachment(Value, frozen=True):
    """A file, in whichever of Telegram's forms."""

    file_id: str
    file_size: int = 0
    file_name: str = ""
    mime_type: str = ""
    emoji: str = ""

    @property
    def named(self) -> File:
        """The file as long as it isn't fetched."""
        return File(self.file_name or "file", self.mime_type, "", self.file_size)


class Topic(Value, frozen=True):
    """A topic that was begun, or called something else."""

    name: str = ""


class Quote(Value, frozen=True):
    """The part of a message that is answered."""

    text: str = ""


class Location(Value, frozen=True):
    latitude: float
    longitude: float


class Contact(Value, frozen=True):
    phone_number: str
    first_name: str = ""
    last_name: str = ""


class Message(Value, frozen=True):
    """A message, with all that a text or a caption may come with."""

    message_id: int
    date: int
    chat: Chat
    sender: User | None = msgspec.field(default=None, name="from")
    sender_chat: Chat | None = None
    is_topic_message: bool = False
    message_thread_id: int = 0
    is_automatic_forward: bool = False
    forward_origin: dict[str, Plain] | None = None
    media_group_id: str = ""
    reply_to_message: "Message | None" = None
    quote: Quote | None = None
    text: str = ""
    caption: str = ""
    entities: tuple[Entity, ...] = ()
    caption_entities: tuple[Entity, ...] = ()
    photo: tuple[Attachment, ...] = ()
    document: Attachment | None = None
    audio: Attachment | None = None
    voice: Attachment | None = None
    video: Attachment | None = None
    video_note: Attachment | None = None
    animation: Attachment | None = None
    sticker: Attachment | None = None
    location: Location | None = None
    contact: Contact | None = None
    forum_topic_created: Topic | None = None
    forum_topic_edited: Topic | None = None
    migrate_from_chat_id: int = 0
    migrate_to_chat_id: int = 0

    @property
    def became(self) -> tuple[str, str] | None:
        """The id that this group had and the one that it has, if this is where it became a supergroup."""
        if self.migrate_to_chat_id:
            return str(self.chat.id), str(self.migrate_to_chat_id)
        return (str(self.migrate_from_chat_id), str(self.chat.id)) if self.migrate_from_chat_id else None

    @property
    def called(self) -> str:
        """What its topic is called from now on, if this is where that was said."""
        named = self.forum_topic_created or self.forum_topic_edited
        return named.name if named else ""

    @property
    def telling(self) -> Telling:
        """Whether that is what its topic is called: else it names what the topic was called at first, if anything."""
        return Telling.NOW if self.called or not self.is_topic_message else Telling.ONCE

    @property
    def words(self) -> str:
        """What is said, in words; of what has none of its own, what it amounts to."""
        if self.location:
            return f"Location: {self.location.latitude}, {self.location.longitude}"
        if self.contact:
            return f"Contact: {self.contact.first_name} {self.contact.last_name} {self.contact.phone_number}"
        return self.text or self.caption or (self.sticker.emoji if self.sticker else "")

    @property
    def attachments(self) -> list[Attachment]:
        """The files in it; of a photo, which comes in several sizes, the largest."""
        photo = self.photo[-1:]
        # An animation comes as a document too.
        rest = (self.animation or self.document, self.audio, self.voice, self.video, self.video_note)
        return [*(_named(one, "photo.jpg", "image/jpeg") for one in photo), *filter(None, rest)]

    @property
    def answered(self) -> "Message | None":
        """The message that it answers; in a topic every message names the one that began it, which is no answer."""
        reply = self.reply_to_message
        return None if reply is None or reply.forum_topic_created else reply


class Callback(Value, frozen=True):
    """A button was pressed."""

    id: str
    sender: User = msgspec.field(name="from")
    data: str = ""
    message: Message | None = None


class Member(Value, frozen=True):
    """Whether somebody is in a chat."""

    status: str
    is_member: bool = False

    @property
    def is_in(self) -> bool:
        return self.status in _IN or self.is_member


class Membership(Value, frozen=True):
    """The bot was brought into a chat, or sent out of it, or may do more or less there."""

    chat: Chat
    old_chat_member: Member
    new_chat_member: Member
    sender: User = msgspec.field(name="from")

    @property
    def begins(self) -> bool:
        return self.new_chat_member.is_in and not self.old_chat_member.is_in

    @property
    def ends(self) -> bool:
        return self.old_chat_member.is_in and not self.new_chat_member.is_in


class Update(Value, frozen=True):
    """One thing that happened."""

    update_id: int
    message: Message | None = None
    edited_message: Message | None = None
    callback_query: Callback | None = None
    my_chat_member: Membership | None = None


def decode(raw: Any) -> Update:
    """An update from what JSON held; raises `Invalid`."""
    try:
        return msgspec.convert(raw, Update, strict=True)
    except msgspec.ValidationError as error:
        raise Invalid("update", str(error), "The Bot API's documentation says what it looks like.") from error


def _named(file: Attachment, name: str, media: str) -> Attachment:
    return msgspec.structs.replace(file, file_name=file.file_name or name, mime_type=file.mime_type or media)
