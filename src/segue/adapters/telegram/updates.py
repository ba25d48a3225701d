"""Updates of Telegram's, decoded: the fields that are read, and nothing is trusted to have the right shape.

The library's own types take five hundred times as long to make, and take a text for a number.
"""

import msgspec

from segue.core.messages import File, Telling
from segue.core.values import Value

_IN = ("creator", "administrator", "member")


class Peer(Value, frozen=True):
    """A person, a bot, a private chat, a group or a channel."""

    id: int
    type: str = ""
    title: str = ""
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""
    can_read_all_group_messages: bool = False
    """Of the bot itself: whether it is shown what isn't meant for it, too."""

    @property
    def name(self) -> str:
        return self.title or f"{self.first_name} {self.last_name}".strip()


class Entity(Value, frozen=True):
    """A stretch of a text that means something, counted in UTF-16."""

    type: str
    offset: int
    length: int
    user: Peer | None = None


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


class Named(Value, frozen=True):
    """A topic that was begun or called something else, or the part of a message that is answered."""

    name: str = ""
    text: str = ""


class Origin(Value, frozen=True):
    """Who said what was forwarded, as far as they show it."""

    sender_user: Peer | None = None
    sender_chat: Peer | None = None
    chat: Peer | None = None
    sender_user_name: str = ""

    @property
    def author(self) -> tuple[str, str]:
        """Their id and name."""
        known = self.sender_user or self.sender_chat or self.chat
        return (str(known.id), known.name) if known else ("", self.sender_user_name)


class Message(Value, frozen=True):
    """A message, with all that a text or a caption may come with."""

    message_id: int
    """0 of a message that only its sender and its reader see."""
    chat: Peer
    sender: Peer | None = msgspec.field(default=None, name="from")
    sender_chat: Peer | None = None
    is_topic_message: bool = False
    message_thread_id: int = 0
    is_automatic_forward: bool = False
    forward_origin: Origin | None = None
    media_group_id: str = ""
    reply_to_message: "Message | None" = None
    quote: Named | None = None
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
    location: dict[str, float] | None = None
    contact: dict[str, str | int] | None = None
    forum_topic_created: Named | None = None
    forum_topic_edited: Named | None = None
    migrate_from_chat_id: int = 0
    migrate_to_chat_id: int = 0
    ephemeral_message_id: int = 0
    """Its id if nobody else in the group sees it; after a while it may be another's."""

    @property
    def author(self) -> Peer | None:
        """The person or group that wrote it: neither a bot, this one included, nor a channel that is copied here."""
        who = self.sender_chat or self.sender
        if who is None or who.is_bot or self.chat.type == "channel" or self.is_automatic_forward:
            return None
        return who

    @property
    def became(self) -> tuple[str, str] | None:
        """The id that this group had and the one that it has, if this is where it became a supergroup."""
        old, new = self.migrate_from_chat_id or self.chat.id, self.migrate_to_chat_id or self.chat.id
        return (str(old), str(new)) if old != new else None

    @property
    def called(self) -> str:
        """The new name of its topic, if this is where that was said."""
        named = self.forum_topic_created or self.forum_topic_edited
        return named.name if named else ""

    @property
    def telling(self) -> Telling:
        """Whether that is what its topic is called: else it names what the topic was called at first, if anything."""
        return Telling.NOW if self.called or not self.is_topic_message else Telling.ONCE

    @property
    def words(self) -> str:
        """The words of it; for what has none of its own, some that say what it is."""
        if self.location:
            return f"Location: {self.location.get('latitude')}, {self.location.get('longitude')}"
        if self.contact:
            told = (str(self.contact.get(key, "")) for key in ("first_name", "last_name", "phone_number"))
            return f"Contact: {' '.join(told)}"
        return self.text or self.caption or (self.sticker.emoji if self.sticker else "")

    @property
    def attachments(self) -> list[Attachment]:
        """The files in it; of a photo, which comes in several sizes, the largest."""
        photo = [msgspec.structs.replace(one, file_name="photo.jpg", mime_type="image/jpeg") for one in self.photo[-1:]]
        # An animation comes as a document too.
        rest = (self.animation or self.document, self.audio, self.voice, self.video, self.video_note)
        return [*photo, *filter(None, rest)]

    @property
    def answered(self) -> "Message | None":
        """The message that it answers; in a topic every message names the one that began it, which is no answer."""
        reply = self.reply_to_message
        return None if reply is None or reply.forum_topic_created else reply


class Callback(Value, frozen=True):
    """A button was pressed."""

    id: str
    sender: Peer = msgspec.field(name="from")
    data: str = ""
    message: Message | None = None


class Member(Value, frozen=True):
    """Whether somebody is in a chat."""

    status: str
    is_member: bool = False


class Membership(Value, frozen=True):
    """The bot was brought into a chat, or sent out of it, or may do more or less there."""

    chat: Peer
    old_chat_member: Member
    new_chat_member: Member
    sender: Peer = msgspec.field(name="from")

    @property
    def brings(self) -> bool | None:
        """Whether the bot is in the chat now; None if that is as it was before."""
        was, now = (one.is_member or one.status in _IN for one in (self.old_chat_member, self.new_chat_member))
        return None if now is was else now


class Update(Value, frozen=True):
    """One thing that happened."""

    update_id: int
    message: Message | None = None
    edited_message: Message | None = None
    callback_query: Callback | None = None
    my_chat_member: Membership | None = None
