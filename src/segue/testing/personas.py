"""The fake platform in the shape of each platform that people use: its ids, its threads, its limits, its class.

A persona is a platform and the adapter for it; the adapter has the abilities of that platform and no others.
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
    """Flat chats by webhook; nothing can be edited or looked up, so a resend may double."""


class WhatsApp(Platform):
    """Like WhatsApp's Cloud API: two ids a person, either of which may be missing, and a chat goes by its person's."""

    name = "whatsapp"
    ids: ClassVar[Patterns] = {
        Noun.PERSON: ("US.1349{n:04}", "4915100{n:05}"),
        Noun.GROUP: ("1203630{n:011}@g.us",),
        Noun.MESSAGE: ("wamid.HBgL+/{n:06}==",),
        Noun.EVENT: ("{message}",),
    }

    def adapter(self) -> WhatsAppAdapter:
        """A new adapter for the account."""
        return WhatsAppAdapter(self)


class SignalAdapter(Polling, Typing):
    """Flat chats by polling; nothing can be looked up, so a resend may double."""

    connection = Connection.ONE


class Signal(Platform):
    """Like Signal: a person is a UUID and a number, a message is its time, a group has a second id."""

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
        """A new adapter for the account."""
        return SignalAdapter(self)


class SlackAdapter(Polling, Threading, Editing, Finding, Whispering):
    """Threads that hang on a message, messages for one person; in doubt it looks whether a message is there."""

    sending = Sending.READ_BACK

    def mention(self, user: str) -> str:
        """Somebody by their id."""
        return f"<@{user}>"


class Slack(Platform):
    """Like Slack: ids are times with a dot, a reply is a thread, a mention is told twice, long texts are cut."""

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
        """A new adapter for the account."""
        return SlackAdapter(self)

    def hears(self, by: Someone, chat: Chat, text: str, quoting: Message | None, to: To) -> Message:
        """Somebody writes; to answer a message is to write in its thread."""
        if quoting is not None:
            chat = chat.within(quoting.thread or quoting.id)
        return super().hears(by, chat, text, None, to)

    def tellings(self, update: Update) -> Sequence[Update]:
        """A mention comes as a mention and as a message."""
        if not update.mentions:
            return [update]
        return [update, msgspec.structs.replace(update, event=f"{update.event}M")]

    def fitting(self, text: str) -> str:
        """Too long a text is cut without a word."""
        return super().fitting(text[: self.longest])


class DiscordAdapter(Looking, Polling, Threading, Editing, Typing):
    """Threads that are channels of their own; a nonce keeps a resend from doubling for a few minutes."""

    sending = Sending.KEYED
    connection = Connection.ONE

    async def place(self, update: Update) -> Place:
        """Where an update comes from; the channel around a thread is known from when the thread was opened."""
        place = await super().place(update)
        around = self.there.ledger.parent(update.thread)
        return msgspec.structs.replace(place, parent=self.there.address(around)) if around else place

    def mention(self, user: str) -> str:
        """Somebody by their id."""
        return f"<@{user}>"


class Discord(Platform):
    """Like Discord: everything is a number, and what is written in a thread comes from the thread's own channel id.

    An update doesn't name the channel around the thread. So a thread's address has the thread's id as chat and as
    thread, which is all that a reply and the opening of a thread have in common; its place tells the channel.
    """

    name = "discord"
    space = "881207955029110855"
    ids: ClassVar[Patterns] = {**dict.fromkeys(Noun, ("12{n:017}",)), Noun.EVENT: ("{message}.{n}",)}
    threads = Threads.SEPARATE
    longest = 2000
    keys_last = 300.0

    def adapter(self) -> DiscordAdapter:
        """A new adapter for the account."""
        return DiscordAdapter(self)

    def opens(self, chat: Chat, title: str, by: Someone | None, key: str = "") -> str:
        """Open a thread; private chats have none."""
        if chat.kind is Kind.DM:
            raise ApiError(400, "there are no threads in private chats")
        return super().opens(chat, title, by, key)

    def address(self, chat: str, thread: str = "") -> Address:
        """In a thread, the thread's id is the chat's."""
        return super().address(thread or chat, thread)

    def spot(self, address: Address) -> tuple[str, str]:
        """The channel around a thread is looked up."""
        parent = self.ledger.parent(address.thread)
        return (parent, address.thread) if parent else super().spot(address)


class TelegramAdapter(Polling, Threading, Editing, Recognizing, Typing):
    """Topics; nothing is keyed or can be looked up, so a message is a placeholder that is edited."""

    sending = Sending.EDIT
    connection = Connection.ONE

    def __init__(self, platform: Platform) -> None:
        super().__init__(platform)
        self._opened: dict[str, Address] = {}

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        """Open a topic; only this adapter remembers which key it was for."""
        if key not in self._opened:
            self._opened[key] = await super().open_thread(parent, title, "")
        return self._opened[key]


class Telegram(Platform):
    """Like Telegram: each chat counts its messages for itself, groups are negative, and topics are everywhere.

    What is written in a forum's General topic names no topic.
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
        """A new adapter for the account."""
        return TelegramAdapter(self)


class MatrixAdapter(Polling, Threading, Editing, Typing):
    """Threads that hang on an event; a transaction id keeps a resend from doubling."""

    sending = Sending.KEYED
    connection = Connection.ONE

    async def address(self, update: Update) -> Address:
        """The address of an update; an edit doesn't say its thread, so the edited message is looked at."""
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
        """Somebody by their id."""
        return user


class Matrix(Platform):
    """Like Matrix: ids with a colon, or two where the homeserver has a port, or none; an edit is an event itself."""

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
        """A new adapter for the account."""
        return MatrixAdapter(self)

    def tellings(self, update: Update) -> Sequence[Update]:
        """An edit or a deletion has an id of its own and names nothing but the event that it is about."""
        if not (update.edits or update.deletes):
            return [update]
        [own] = self.new.make(Noun.MESSAGE)
        return [msgspec.structs.replace(update, event=own, message=own, thread="")]


class FeishuAdapter(Looking, Called, Threading, Editing):
    """Threads that hang on a message and have an id of their own; a key keeps a resend from doubling for an hour."""

    sending = Sending.KEYED

    def mention(self, user: str) -> str:
        """Somebody by their id."""
        return f'<at user_id="{user}"></at>'


class Feishu(Platform):
    """Like Feishu: a message is told by webhook, under the event's id and its own."""

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
        """A new adapter for the account."""
        return FeishuAdapter(self)


Persona = WhatsApp | Signal | Slack | Discord | Telegram | Matrix | Feishu
PERSONAS: tuple[type[Persona], ...] = (WhatsApp, Signal, Slack, Discord, Telegram, Matrix, Feishu)
