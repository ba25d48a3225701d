"""Updates as Telegram sends them, read into arrivals.

Only what is needed is read. What a chat can hold and nobody here understands is a letter; what isn't somebody's message
to others (who joined, what was pinned) is nothing. Three things are remembered though nobody spoke: a group's new id,
what a topic is called, and that somebody brought the bot into a group.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import Arrival, Part, Speaker, Telling, Text
from segue.core.values import Moment, Value
from segue.errors import Invalid

_FOREIGN = ("poll", "game", "story", "invoice", "paid_media", "checklist", "giveaway", "dice")
"""What people send that has neither words nor a file."""
_QUOTED = 1000
"""Characters of a quoted text that are shown to the agent."""
_GROUPS = ("group", "supergroup")
_IN = ("creator", "administrator", "member")
_COMMAND = re.compile(r"^(/[A-Za-z0-9_]+)@([A-Za-z0-9_]+)(?=\s|$)")


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
    reply_to_message: Message | None = None
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
    def answered(self) -> Message | None:
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


class Me(Value, frozen=True):
    """The bot itself."""

    id: int
    username: str


class Heard(Value, frozen=True):
    """A message to the agent: the arrival, and the files that are to be fetched for it."""

    arrival: Arrival
    attachments: tuple[Attachment, ...] = ()
    callback: str = ""
    """The button that is to be let go of."""


def decode(raw: Any) -> Update:
    """An update from what JSON held; raises `Invalid`."""
    try:
        return msgspec.convert(raw, Update, strict=True)
    except msgspec.ValidationError as error:
        raise Invalid("update", str(error), "The Bot API's documentation says what it looks like.") from error


def read(update: Update, raw: Mapping[str, Any], account: str, me: Me, at: Moment) -> Heard | None:
    """What an update says to the agent, if anything; raises `Invalid` for what can't be understood."""
    if update.callback_query is not None:
        return _pressed(update, update.callback_query, account, at)
    if update.my_chat_member is not None:
        return _brought(update, update.my_chat_member, account, at)
    message = update.message or update.edited_message
    if message is None or not _from_somebody(message, me):
        return None
    text = _for_us(message, me)
    if text is None:
        return None
    files = tuple(message.attachments)
    if not text and not files and not message.became and not message.called:
        sent = raw["message" if update.message else "edited_message"]
        if foreign := next((kind for kind in _FOREIGN if kind in sent), ""):
            raise Invalid(foreign, "messages of this kind aren't understood", "Write it in words.")
        return None
    id, number = str(message.message_id), update.update_id
    parts: tuple[Part, ...] = (Text(_quoted(message, me) + text),) if text else ()
    arrival = Arrival(
        place=_place(message, account),
        # An edit keeps the message's id, and mustn't be taken for the message.
        message=id if update.message else f"{id}.{number}",
        speaker=_speaker(message, account),
        parts=parts,
        at=at,
        seen_as=(f"update/{number}",),
        quotes=str(message.answered.message_id) if message.answered else "",
        edits="" if update.message else id,
        mentions_agent=_mentions(message, me),
        topic=message.telling,
    )
    return Heard(arrival, files)


def _pressed(update: Update, pressed: Callback, account: str, at: Moment) -> Heard | None:
    if pressed.message is None or not pressed.data or pressed.sender.is_bot:
        return None
    arrival = Arrival(
        place=_place(pressed.message, account),
        message=f"button.{pressed.id}",
        speaker=Speaker(Identity("telegram", account, str(pressed.sender.id)), pressed.sender.name),
        parts=(Text(pressed.data),),
        at=at,
        seen_as=(f"update/{update.update_id}",),
        mentions_agent=True,
        topic=pressed.message.telling,
    )
    return Heard(arrival, callback=pressed.id)


def _brought(update: Update, change: Membership, account: str, at: Moment) -> Heard | None:
    """That a person brought the bot into a group; in a channel nobody is answered, a private chat its person begins."""
    if change.chat.type not in _GROUPS or change.sender.is_bot or not change.begins:
        return None
    arrival = Arrival(
        place=Place(Address("telegram", account, "", str(change.chat.id)), Kind.GROUP, change.chat.title),
        message=f"brought.{update.update_id}",
        speaker=Speaker(Identity("telegram", account, str(change.sender.id)), change.sender.name),
        parts=(),
        at=at,
        seen_as=(f"update/{update.update_id}",),
        brings_agent=True,
    )
    return Heard(arrival)


def _from_somebody(message: Message, me: Me) -> bool:
    """Whether a person wrote it: neither a bot, this one included, nor a channel whose posts are copied here."""
    if message.chat.type == "channel" or message.is_automatic_forward:
        return False
    if message.sender_chat is not None:
        return True
    return message.sender is not None and not message.sender.is_bot and message.sender.id != me.id


def _for_us(message: Message, me: Me) -> str | None:
    """The text without the name after a command; None if the command is for another bot."""
    found = _COMMAND.match(message.words)
    if found is None:
        return message.words
    if found[2].casefold() != me.username.casefold():
        return None
    return found[1] + message.words[found.end() :]


def _place(message: Message, account: str) -> Place:
    chat = message.chat
    # Elsewhere than in a topic the thread's id is that of a message which was answered.
    thread = str(message.message_thread_id) if message.is_topic_message and message.message_thread_id else ""
    began = message.reply_to_message.forum_topic_created if message.reply_to_message else None
    private = chat.type == "private"
    name = message.sender.name if private and message.sender and not message.sender.is_bot else chat.title
    address = Address("telegram", account, "", str(chat.id), thread)
    topic = message.called or (began.name if began else "")
    return Place(address, Kind.DM if private else Kind.GROUP, name, topic if thread else "")


def _speaker(message: Message, account: str) -> Speaker:
    if message.sender_chat is not None:
        return Speaker(Identity("telegram", account, str(message.sender_chat.id)), message.sender_chat.title)
    if message.sender is None:
        raise Invalid("from", "nobody wrote it", "A message has a sender.")
    return Speaker(Identity("telegram", account, str(message.sender.id)), message.sender.name)


def _quoted(message: Message, me: Me) -> str:
    """What is answered, if the agent may not know it: a part that was picked out, or what somebody else wrote."""
    if message.words.startswith("/"):
        return ""
    picked = message.quote.text if message.quote else ""
    reply = message.answered
    if not picked and reply is not None and (reply.sender is None or reply.sender.id != me.id):
        picked = reply.words
    return "".join(f"> {line}\n" for line in picked[:_QUOTED].splitlines()) + ("\n" if picked else "")


def _mentions(message: Message, me: Me) -> bool:
    if message.answered and message.answered.sender and message.answered.sender.id == me.id:
        return True
    text = (message.text or message.caption).encode("utf-16-le", "surrogatepass")
    for entity in message.entities or message.caption_entities:
        said = text[2 * entity.offset : 2 * (entity.offset + entity.length)].decode("utf-16-le", "replace")
        match entity.type:
            case "text_mention" if entity.user and entity.user.id == me.id:
                return True
            case "mention" if said.casefold() == f"@{me.username}".casefold():
                return True
            case "bot_command" if entity.offset == 0:
                return True
    return _COMMAND.match(message.words) is not None


def _named(file: Attachment, name: str, media: str) -> Attachment:
    return msgspec.structs.replace(file, file_name=file.file_name or name, mime_type=file.mime_type or media)
