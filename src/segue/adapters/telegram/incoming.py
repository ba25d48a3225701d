"""Updates, read into arrivals.

What a chat can hold and nobody here understands is a letter; what isn't somebody's message to others (who joined, what
was pinned) is nothing. Three things are remembered though nobody spoke: a group's new id, what a topic is called, and
that somebody brought the bot into a group.
"""

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from segue.adapters.shared.account import Account, foreign
from segue.adapters.shared.attachments import BEGINNING
from segue.adapters.telegram.api import EPHEMERAL
from segue.adapters.telegram.updates import Callback, Membership, Message, Peer, Update
from segue.core.lanes import Kind, Place
from segue.core.messages import Arrival, Citation, Citing, Pressed, Text
from segue.core.values import Moment

_FOREIGN = ("poll", "game", "story", "invoice", "paid_media", "checklist", "giveaway", "dice", "rich_message")
"""Kinds of messages that have neither words nor a file, or words in a form that isn't read."""
_UNSEEN = "Nobody else there saw this message; your answer is seen by everybody."
_COMMAND = re.compile(r"^(/[A-Za-z0-9_]+)@([A-Za-z0-9_]+)(?=\s|$)")


def read(update: Update, raw: Mapping[str, Any], account: Account, me: Peer, at: Moment) -> Arrival | None:
    """The message to the agent in an update, if there is one; raises `Invalid` for what can't be understood."""
    if update.callback_query:
        found = _pressed(update.callback_query, account, at)
    elif update.my_chat_member:
        found = _brought(update.my_chat_member, update.update_id, account, at)
    else:
        found = _said(update, raw, account, me, at)
    return found and replace(found, seen_as=(f"update/{update.update_id}",))


def _pressed(pressed: Callback, account: Account, at: Moment) -> Arrival | None:
    message = pressed.message
    if message is None or not pressed.data or pressed.sender.is_bot:
        return None
    speaker = account.speaker(str(pressed.sender.id), pressed.sender.name)
    press = Pressed(_ours(message, pressed.sender), pressed.data)
    place = _place(message, account)
    return Arrival(place, f"button.{pressed.id}", speaker, (), at, pressed=press, topic=message.telling)


def _brought(change: Membership, number: int, account: Account, at: Moment) -> Arrival | None:
    """That a person brought the bot into a group; in a channel nobody is answered, a private chat its person begins."""
    if change.chat.type not in {"group", "supergroup"} or change.sender.is_bot or not change.brings:
        return None
    place = Place(account.address(str(change.chat.id)), Kind.GROUP, change.chat.title)
    speaker = account.speaker(str(change.sender.id), change.sender.name)
    return Arrival(place, f"brought.{number}", speaker, (), at, brings_agent=True)


def _said(update: Update, raw: Mapping[str, Any], account: Account, me: Peer, at: Moment) -> Arrival | None:
    message, is_new = update.message or update.edited_message, update.message is not None
    if message is None or (author := message.author) is None or (text := _for_us(message, me)) is None:
        return None
    files, forwarded, unseen = message.attachments, message.forward_origin, message.ephemeral_message_id
    named = [file.named for file in files]
    if not (text or files or message.became or message.called):
        sent = raw["message" if is_new else "edited_message"]
        named = [foreign(kind) for kind in _FOREIGN if kind in sent][:1]
        if not named:
            return None
    # Telegram gives the number of what nobody else saw to another message later.
    id = f"{EPHEMERAL}.{unseen}.{update.update_id}" if unseen else str(message.message_id)
    return Arrival(
        place=_place(message, account),
        # An edit keeps the message's id, and mustn't be taken for the message.
        message=id if is_new else f"{id}.{update.update_id}",
        speaker=account.speaker(str(author.id), author.name),
        parts=(*((Text(text),) if text and not forwarded else ()), *named),
        at=at,
        cites=_cites(message, text, me),
        quotes=_ours(message.answered, message.sender) if message.answered else "",
        edits="" if is_new else id,
        mentions_agent=bool(unseen) or _mentions(message, me),
        topic=message.telling,
        remarks=(_UNSEEN,) if unseen and not text.startswith("/") else (),
        album=message.media_group_id if is_new else "",
    )


def _for_us(message: Message, me: Peer) -> str | None:
    """The text without the name after a command; None if the command is for another bot.

    What was forwarded somebody else said, perhaps to another bot: it is cited, and no command.
    """
    found = _COMMAND.match(message.words) if message.forward_origin is None else None
    if found is None:
        return message.words
    return found[1] + message.words[found.end() :] if found[2].casefold() == me.username.casefold() else None


def _ours(message: Message, reader: Peer | None) -> str:
    """The id of a message of ours, as it was sent: one that nobody but its reader saw has theirs in it."""
    unseen = message.ephemeral_message_id
    return f"{EPHEMERAL}.{reader.id}.{unseen}" if unseen and reader else str(message.message_id)


def _place(message: Message, account: Account) -> Place:
    # Elsewhere than in a topic the thread's id is that of a message which was answered.
    thread = str(message.message_thread_id or "") if message.is_topic_message else ""
    began = message.reply_to_message.forum_topic_created if message.reply_to_message else None
    private = message.chat.type == "private"
    name = message.author.name if private and message.author else message.chat.name
    topic = message.called or (began.name if began else "")
    address = account.address(str(message.chat.id), thread)
    return Place(address, Kind.DM if private else Kind.GROUP, name, topic if thread else "")


def _cites(message: Message, text: str, me: Peer) -> tuple[Citation, ...]:
    """Words of somebody else: all of a forward, and what is answered if the agent may not know it.

    That is a part which was picked out, or what somebody else wrote.
    """
    if message.forward_origin is not None:
        return (Citation(text, *message.forward_origin.author, Citing.FORWARD),) if text else ()
    sender = message.answered.sender if message.answered else None
    picked = message.quote.text if message.quote else ""
    if not picked and message.answered and (sender is None or sender.id != me.id):
        picked = message.answered.words
    author = (str(sender.id), sender.name) if sender else ("", "")
    return (Citation(picked[:BEGINNING], *author),) if picked else ()


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
