"""Updates, read into arrivals.

What a chat can hold and nobody here understands is a letter; what isn't somebody's message to others (who joined, what
was pinned) is nothing. Three things are remembered though nobody spoke: a group's new id, what a topic is called, and
that somebody brought the bot into a group.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import BEGINNING
from segue.adapters.telegram.chats import EPHEMERAL
from segue.adapters.telegram.updates import Attachment, Callback, Membership, Message, Peer, Update
from segue.core.lanes import Kind, Place
from segue.core.messages import Arrival, Citation, Citing, Pressed, Speaker, Text
from segue.core.values import Moment, Value
from segue.errors import Invalid

_FOREIGN = ("poll", "game", "story", "invoice", "paid_media", "checklist", "giveaway", "dice")
"""Kinds of messages that have neither words nor a file."""
_UNSEEN = "Nobody else there saw this message; your answer is seen by everybody."
_COMMAND = re.compile(r"^(/[A-Za-z0-9_]+)@([A-Za-z0-9_]+)(?=\s|$)")


class Heard(Value, frozen=True):
    """A message to the agent: the arrival, and the files that are to be fetched for it."""

    arrival: Arrival
    attachments: tuple[Attachment, ...] = ()
    callback: str = ""
    """The button that is to be let go of."""


def read(update: Update, raw: Mapping[str, Any], account: Account, me: Peer, at: Moment) -> Heard | None:
    """The message to the agent in an update, if there is one; raises `Invalid` for what can't be understood."""
    seen = (f"update/{update.update_id}",)
    if update.callback_query is not None:
        return _pressed(update.callback_query, account, at, seen)
    if update.my_chat_member is not None:
        return _brought(update, update.my_chat_member, account, at, seen)
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
    id, forwarded, unseen = str(message.message_id), message.forward_origin is not None, message.ephemeral_message_id
    if unseen:
        # Telegram gives it to another one later.
        id = f"{EPHEMERAL}.{unseen}.{update.update_id}"
    arrival = Arrival(
        place=_place(message, account),
        # An edit keeps the message's id, and mustn't be taken for the message.
        message=id if update.message else f"{id}.{update.update_id}",
        speaker=_speaker(message, account),
        parts=(*((Text(text),) if text and not forwarded else ()), *(file.named for file in files)),
        at=at,
        seen_as=seen,
        cites=tuple(_cites(message, text, me)),
        quotes=_ours(message.answered, message.sender) if message.answered else "",
        edits="" if update.message else id,
        mentions_agent=bool(unseen) or _mentions(message, me),
        topic=message.telling,
        remarks=(_UNSEEN,) if unseen and not text.startswith("/") else (),
    )
    return Heard(arrival, files)


def _pressed(pressed: Callback, account: Account, at: Moment, seen: tuple[str, ...]) -> Heard | None:
    message = pressed.message
    if message is None or not pressed.data or pressed.sender.is_bot:
        return None
    place, speaker = _place(message, account), account.speaker(str(pressed.sender.id), pressed.sender.name)
    press = Pressed(_ours(message, pressed.sender), pressed.data)
    id, topic = f"button.{pressed.id}", message.telling
    return Heard(Arrival(place, id, speaker, (), at, seen_as=seen, pressed=press, topic=topic), callback=pressed.id)


def _ours(message: Message, reader: Peer | None) -> str:
    """The id of a message of ours, as it was sent: one that nobody but its reader saw has theirs in it."""
    unseen = message.ephemeral_message_id
    return f"{EPHEMERAL}.{reader.id}.{unseen}" if unseen and reader else str(message.message_id)


def _brought(update: Update, change: Membership, account: Account, at: Moment, seen: tuple[str, ...]) -> Heard | None:
    """That a person brought the bot into a group; in a channel nobody is answered, a private chat its person begins."""
    begins = change.became and change.new_chat_member.is_in
    if change.chat.type not in {"group", "supergroup"} or change.sender.is_bot or not begins:
        return None
    place = Place(account.address(str(change.chat.id)), Kind.GROUP, change.chat.title)
    speaker, id = account.speaker(str(change.sender.id), change.sender.name), f"brought.{update.update_id}"
    return Heard(Arrival(place, id, speaker, (), at, seen_as=seen, brings_agent=True))


def _from_somebody(message: Message, me: Peer) -> bool:
    """Whether a person wrote it: neither a bot, this one included, nor a channel whose posts are copied here."""
    if message.chat.type == "channel" or message.is_automatic_forward:
        return False
    if message.sender_chat is not None:
        return True
    return message.sender is not None and not message.sender.is_bot and message.sender.id != me.id


def _for_us(message: Message, me: Peer) -> str | None:
    """The text without the name after a command; None if the command is for another bot.

    What was forwarded somebody else said, perhaps to another bot: it is cited, and no command.
    """
    found = _COMMAND.match(message.words) if message.forward_origin is None else None
    if found is None:
        return message.words
    return found[1] + message.words[found.end() :] if found[2].casefold() == me.username.casefold() else None


def _place(message: Message, account: Account) -> Place:
    chat = message.chat
    # Elsewhere than in a topic the thread's id is that of a message which was answered.
    thread = str(message.message_thread_id) if message.is_topic_message and message.message_thread_id else ""
    began = message.reply_to_message.forum_topic_created if message.reply_to_message else None
    private = chat.type == "private"
    name = message.sender.name if private and message.sender and not message.sender.is_bot else chat.title
    topic = message.called or (began.name if began else "")
    address = account.address(str(chat.id), thread)
    return Place(address, Kind.DM if private else Kind.GROUP, name, topic if thread else "")


def _speaker(message: Message, account: Account) -> Speaker:
    who = message.sender_chat or message.sender
    if who is None:
        raise Invalid("from", "nobody wrote it", "A message has a sender.")
    return account.speaker(str(who.id), who.name)


def _cites(message: Message, text: str, me: Peer) -> Iterator[Citation]:
    """Words of somebody else: all of a forward, and what is answered if the agent may not know it.

    That is a part which was picked out, or what somebody else wrote.
    """
    if message.forward_origin is not None:
        if text:
            yield Citation(text, *message.forward_origin.author, Citing.FORWARD)
        return
    reply, picked = message.answered, message.quote.text if message.quote else ""
    sender = reply.sender if reply else None
    if not picked and reply is not None and (sender is None or sender.id != me.id):
        picked = reply.words
    if picked:
        author, name = (str(sender.id), sender.name) if sender else ("", "")
        yield Citation(picked[:BEGINNING], author, name)


def _mentions(message: Message, me: Peer) -> bool:
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
            case "bot_command" if entity.offset == 0 and message.forward_origin is None:
                # Telegram itself picks the bot that a command without a name is shown to, unless this one sees all.
                if not me.can_read_all_group_messages:
                    return True
    return message.forward_origin is None and _COMMAND.match(message.words) is not None
