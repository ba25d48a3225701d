"""The fake platform in the shape of real platforms: their ids, threads, limits and class of sending.

A persona is a platform and its adapter. The adapter has exactly the abilities of the real platform.
"""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from segue.core.contracts.adapters import Connection
from segue.core.lanes import Address, Kind, Place
from segue.core.messages import Sending
from segue.testing.adapters import (
    Called,
    Editing,
    Finding,
    Looking,
    Polling,
    Recognizing,
    Threading,
    Typing,
    Whispering,
)
from segue.testing.chats import Chat, Someone, To
from segue.testing.faults import ApiError, Call
from segue.testing.ids import Noun, Patterns
from segue.testing.ledger import Message
from segue.testing.platform import Platform, Threads, utf8, utf16
from segue.testing.wire import Update


class WhatsAppAdapter(Called, Typing):
    """Flat chats by webhook. Messages can't be edited or looked up, so a resend may duplicate."""


class WhatsApp(Platform):
    """Like WhatsApp's Cloud API: a person has two ids, of which one may be missing. A chat has its person's ids."""

    name = "whatsapp"
    ids: ClassVar[Patterns] = {
        Noun.PERSON: ("US.1349{n:04}", "4915100{n:05}"),
        Noun.GROUP: ("1203630{n:011}@g.us",),
        Noun.MESSAGE: ("wamid.HBgL+/{n:06}==",),
        Noun.EVENT: ("{message}",),
    }

    def adapter(self) -> WhatsAppAdapter:
        """Return a new adapter for the account."""
        return WhatsAppAdapter(self)


class SignalAdapter(Polling, Typing):
    """Flat chats by polling. Messages can't be looked up, so a resend may duplicate."""

    connection = Connection.ONE


class Signal(Platform):
    """Like Signal: a person has a UUID and a number, a message's id is its time, a group has a second id."""

    name = "signal"
    ids: ClassVar[Patterns] = {
        Noun.PERSON: ("9f1c0ab2-6b1d-4a0e-8d3a-{n:012x}", "+4915100{n:05}"),
        Noun.GROUP: ("Z3JvdXA/{n:04}+w=", "internal/{n}"),
        Noun.MESSAGE: ("{seconds}{n:03}",),
        Noun.EVENT: ("{message}.{n}",),
    }
    tells_deletions = True
    longest = 2000

    def adapter(self) -> SignalAdapter:
        """Return a new adapter for the account."""
        return SignalAdapter(self)


class SlackAdapter(Polling, Threading, Editing, Finding, Whispering):
    """Threads that hang on a message, and messages for one person.

    After a doubtful attempt it looks for the message.
    """

    sending = Sending.READ_BACK

    def mention(self, user: str) -> str:
        """Return a mention of a person by id."""
        return f"<@{user}>"


class Slack(Platform):
    """Like Slack: ids are decimal times, replies are threads, mentions arrive twice, and long texts are cut."""

    name = "slack"
    space = "T024BE7LD"
    ids: ClassVar[Patterns] = {
        Noun.PERSON: ("U0{n:07}",),
        Noun.DM: ("D0{n:07}",),
        Noun.GROUP: ("C0{n:07}",),
        Noun.MESSAGE: ("{seconds}.{n:06}",),
        Noun.EVENT: ("Ev0{n:07}",),
    }
    threads = Threads.ANCHORED
    tells_deletions = True
    longest = 40_000

    def adapter(self) -> SlackAdapter:
        """Return a new adapter for the account."""
        return SlackAdapter(self)

    def hears(self, by: Someone, chat: Chat, text: str, quoting: Message | None, to: To) -> Message:
        """Write as a person; an answer to a message goes to its thread."""
        if quoting is not None:
            chat = chat.within(quoting.thread or quoting.id)
        return super().hears(by, chat, text, None, to)

    def tellings(self, update: Update) -> Sequence[Update]:
        """Return a mention twice: as a mention and as a message."""
        if not update.mentions:
            return [update]
        return [update, msgspec.structs.replace(update, event=f"{update.event}M")]

    def fitting(self, text: str) -> str:
        """Cut a text that is too long, without an error."""
        return super().fitting(text[: self.longest])


class DiscordAdapter(Looking, Polling, Threading, Editing, Typing):
    """Threads that are channels of their own. A nonce prevents duplicates for a few minutes."""

    sending = Sending.KEYED
    connection = Connection.ONE

    async def place(self, update: Update) -> Place:
        """Return the place of an update. The channel of a thread is known since the thread was opened."""
        place = await super().place(update)
        around = self.there.ledger.parent(update.thread)
        return msgspec.structs.replace(place, parent=self.there.address(around)) if around else place

    def mention(self, user: str) -> str:
        """Return a mention of a person by id."""
        return f"<@{user}>"


class Discord(Platform):
    """Like Discord: ids are numbers, and a message in a thread has the thread's own channel id.

    An update doesn't name the thread's channel. So a thread's address has the thread's id as chat and as thread:
    updates and the opening of a thread share only that id. The thread's place names the channel.
    """

    name = "discord"
    space = "881207955029110855"
    ids: ClassVar[Patterns] = {**dict.fromkeys(Noun, ("12{n:017}",)), Noun.EVENT: ("{message}.{n}",)}
    threads = Threads.SEPARATE
    longest = 2000
    keys_last = 300.0

    def adapter(self) -> DiscordAdapter:
        """Return a new adapter for the account."""
        return DiscordAdapter(self)

    def opens(self, chat: Chat, title: str, by: Someone | None, key: str = "") -> str:
        """Open a thread; private chats have none."""
        if chat.kind is Kind.DM:
            raise ApiError(400, "there are no threads in private chats")
        return super().opens(chat, title, by, key)

    def address(self, chat: str, thread: str = "") -> Address:
        """Return an address. In a thread, its chat is the thread's id."""
        return super().address(thread or chat, thread)

    def spot(self, address: Address) -> tuple[str, str]:
        """Return the chat and thread of an address, after looking up a thread's channel."""
        parent = self.ledger.parent(address.thread)
        return (parent, address.thread) if parent else super().spot(address)


class TelegramAdapter(Polling, Threading, Editing, Recognizing, Typing):
    """Topics. Messages have no keys and can't be looked up, so a placeholder is sent and then edited."""

    sending = Sending.EDIT
    connection = Connection.ONE

    def __init__(self, platform: Platform) -> None:
        super().__init__(platform)
        self._opened: dict[str, Address] = {}

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        """Open a topic. Only this adapter remembers its key."""
        if key not in self._opened:
            self._opened[key] = await super().open_thread(parent, title, "")
        return self._opened[key]


class Telegram(Platform):
    """Like Telegram: each chat counts its own messages, groups have negative ids, and every chat has topics.

    A message in a forum's General topic names no topic.
    """

    name = "telegram"
    ids: ClassVar[Patterns] = {
        Noun.PERSON: ("50{n:08}",),
        Noun.GROUP: ("-10010{n:08}",),
        Noun.MESSAGE: ("{here}",),
        Noun.THREAD: ("{here}",),
        Noun.EVENT: ("7{n:08}",),
    }
    threads = Threads.SEPARATE
    longest = 4096
    count = utf16

    def adapter(self) -> TelegramAdapter:
        """Return a new adapter for the account."""
        return TelegramAdapter(self)


class MatrixAdapter(Polling, Threading, Editing, Typing):
    """Threads that hang on an event. A transaction id prevents duplicates."""

    sending = Sending.KEYED
    connection = Connection.ONE

    async def address(self, update: Update) -> Address:
        """Return the address of an update. An edit doesn't name its thread, so the edited message is looked up."""
        if not update.edits:
            return await super().address(update)
        try:
            edited = await self.there.faults.call(
                Call.LOOK, lambda: self.there.ledger.message(update.chat, update.edits)
            )
        except ApiError as error:
            if error.status == 404:
                return await super().address(update)
            raise ConnectionError(str(error)) from error
        return self.there.address(edited.chat, edited.thread)

    def mention(self, user: str) -> str:
        """Return a mention of a person by id."""
        return user


class Matrix(Platform):
    """Like Matrix: ids have one colon, two with a port, or none. An edit is an event of its own."""

    name = "matrix"
    space = "example.org:8448"
    ids: ClassVar[Patterns] = {
        Noun.PERSON: ("@u{n}:example.org:8448",),
        Noun.DM: ("!{n:043x}",),
        Noun.GROUP: ("!r{n}:example.org:8448",),
        Noun.MESSAGE: ("${n:043x}",),
        Noun.EVENT: ("{message}",),
    }
    threads = Threads.ANCHORED
    tells_deletions = True
    longest = 60_000
    count = utf8
    keys_last = float("inf")

    def adapter(self) -> MatrixAdapter:
        """Return a new adapter for the account."""
        return MatrixAdapter(self)

    def tellings(self, update: Update) -> Sequence[Update]:
        """Return the update. An edit or deletion has its own id and names only the event that it concerns."""
        if not (update.edits or update.deletes):
            return [update]
        [own] = self.new.make(Noun.MESSAGE)
        return [msgspec.structs.replace(update, event=own, message=own, thread="")]


class FeishuAdapter(Looking, Called, Threading, Editing):
    """Threads that hang on a message and have ids of their own. A key prevents duplicates for an hour."""

    sending = Sending.KEYED

    def mention(self, user: str) -> str:
        """Return a mention of a person by id."""
        return f'<at user_id="{user}"></at>'


class Feishu(Platform):
    """Like Feishu: webhooks report a message by the event's id and its own."""

    name = "feishu"
    ids: ClassVar[Patterns] = {
        Noun.PERSON: ("ou_{n:08x}",),
        Noun.DM: ("oc_{n:08x}",),
        Noun.GROUP: ("oc_{n:08x}",),
        Noun.MESSAGE: ("om_{n:08x}",),
        Noun.THREAD: ("omt_{n:08x}",),
        Noun.EVENT: ("ev_{n:08x}",),
    }
    threads = Threads.ANCHORED
    tells_deletions = True
    longest = 150_000
    count = utf8
    keys_last = 3600.0

    def adapter(self) -> FeishuAdapter:
        """Return a new adapter for the account."""
        return FeishuAdapter(self)


Persona = WhatsApp | Signal | Slack | Discord | Telegram | Matrix | Feishu
PERSONAS: tuple[type[Persona], ...] = (WhatsApp, Signal, Slack, Discord, Telegram, Matrix, Feishu)
