"""The Telegram adapter: one object per account, which polls for updates or is called with them."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.types import ASGIApp
from telegram import BotCommand
from telegram.constants import ChatAction
from telegram.error import BadRequest, TelegramError

from segue.adapters.shared.account import OwnAccount
from segue.adapters.shared.attachments import Tries
from segue.adapters.shared.background import beside
from segue.adapters.shared.downloads import LARGEST, Limits, NotFetched, fetching
from segue.adapters.telegram.api import POLL, PUBLIC, UPDATES, Api, reached
from segue.adapters.telegram.chats import Chats, Pace, number, thread
from segue.adapters.telegram.incoming import Heard, Me, read
from segue.adapters.telegram.outgoing import Outgoing, fits
from segue.adapters.telegram.updates import Attachment, Update, decode
from segue.adapters.telegram.webhook import secret_of, webhook
from segue.core.commands import Spec
from segue.core.contracts.adapters import Accept, Connection, Files, Intake, Letter
from segue.core.contracts.database import Clock
from segue.core.lanes import Address
from segue.core.messages import Arrival, Delivery, File, Sending
from segue.core.values import Secret
from segue.errors import Disconnected, SendLater, SendNever

log = logging.getLogger(__name__)

_LONGEST_TITLE = 128
_ALBUMS = 100
"""Albums that are remembered: the pictures of one come right after each other."""
_LOOK = 60.0
"""Seconds between two looks at whether Telegram still calls."""


class Telegram:
    """Speaks to Telegram as one bot, and polls for what people say to it."""

    platform = "telegram"
    sending = Sending.EDIT
    connection = Connection.ONE
    largest_file = 50 * 1000 * 1000
    """What a bot may send."""

    def __init__(
        self,
        account: str,
        token: Secret,
        files: Files,
        api: str = PUBLIC,
        *,
        pace: Pace = Pace(),  # noqa: B008 -- frozen
        clock: Clock = time.time,
        ticks: Clock = time.monotonic,
    ) -> None:
        self.account = account
        self._own = OwnAccount(self.platform, account)
        self._token = token
        self._base = api
        self._api = Api(token, api)
        self._files = files
        self._clock = clock
        self._chats = Chats(pace, ticks)
        self._outgoing = Outgoing(self._api, files, self._chats)
        self._me: Me | None = None
        self._opened: dict[str, asyncio.Task[Address]] = {}
        self._tries = Tries()
        self._albums: deque[str] = deque(maxlen=_ALBUMS)
        """Those of which a picture named the agent."""

    async def close(self) -> None:
        """Let go of the connections."""
        for opening in self._opened.values():
            opening.cancel()
        await self._api.hang_up()

    async def who(self) -> Me:
        """The bot itself."""
        if self._me is None:
            user = await reached(self._api.get_me())
            self._me = Me(user.id, user.username or "")
        return self._me

    async def start_link(self, code: str) -> str:
        """A link that opens a chat with the bot and sends it the code."""
        try:
            me = await self.who()
        except Disconnected as error:
            raise SendLater(str(error)) from error
        return f"https://t.me/{me.username}?start={code}"

    async def run(self, intake: Intake) -> None:
        """Poll until cancelled; the offset, which makes Telegram forget, follows what was accepted."""
        await self.who()
        await reached(self._api.delete_webhook())
        async with beside(f"the menu of telegram.{self.account}", self._fill_menu(intake.commands)):
            await self._poll(intake)

    async def _poll(self, intake: Intake) -> None:
        offset: int | None = None
        # The first answer comes at once, so that the account is known to be well before anybody writes.
        wait = 0
        while True:
            updates = await reached(self._api.updates(offset, wait))
            intake.connected()
            wait = POLL
            # After an empty answer nothing is left to forget; the ids may begin anew after a quiet week.
            offset = None
            for raw in updates:
                await self.take(raw, intake.accept)
                if isinstance(raw, dict) and isinstance(number := raw.get("update_id"), int):
                    offset = number + 1

    async def _fill_menu(self, commands: Sequence[Spec]) -> None:
        await reached(self._api.set_my_commands([BotCommand(spec.name, spec.does[:256]) for spec in commands]))

    async def take(self, raw: Any, accept: Accept) -> None:
        """Take one update in."""
        heard = await self._own.or_letter(self._read(raw, await self.who()), raw)
        if heard is None or isinstance(heard, Letter):
            if heard is not None:
                await accept(heard)
            return
        await accept(self._own.unfetched(heard.arrival, lambda: self._fetch(heard.attachments), raw))
        if heard.callback:
            await self._let_go(heard.callback, heard.arrival)

    async def _let_go(self, button: str, arrived: Arrival) -> None:
        """Acknowledge a button once its press is durable; in a private chat those of its message are used up."""
        chat = number(arrived.place.address.chat)
        try:
            await self._api.answer_callback_query(button)
            if arrived.pressed and chat > 0:
                await self._api.edit_message_reply_markup(chat, number(arrived.pressed.message))
        except TelegramError as error:
            log.info("a button stays as it is: %s", type(error).__name__)

    async def _read(self, raw: Any, me: Me) -> Heard | None:
        """What an update tells, with the other id of a group that became a supergroup."""
        update = decode(raw)
        heard = read(update, raw, self._own, me, self._clock())
        self._remember(update)
        if heard is None:
            return None
        aliases = self._chats.aliases(heard.arrival.place.address.chat)
        meant = self._meant(update.message.media_group_id if update.message else "", heard.arrival)
        arrival = msgspec.structs.replace(heard.arrival, chat_aliases=aliases, mentions_agent=meant)
        return msgspec.structs.replace(heard, arrival=arrival)

    def _remember(self, update: Update) -> None:
        if update.message is not None and update.message.became:
            self._chats.became(*update.message.became)
        change = update.my_chat_member
        if change is not None and change.chat.type != "private" and (change.begins or change.ends):
            became = "was brought into" if change.begins else "was removed from"
            chat, by = change.chat, change.sender
            log.warning(
                "telegram.%s %s the %s %r (%d) by %d", self.account, became, chat.type, chat.title, chat.id, by.id
            )

    async def _fetch(self, attachments: Sequence[Attachment]) -> list[File | str]:
        return [await self._part(file) for file in attachments]

    def _meant(self, album: str, arrival: Arrival) -> bool:
        """Whether the agent is meant: an album is a message for each picture, of which only one has the words."""
        if album and arrival.mentions_agent:
            self._albums.append(album)
        return arrival.mentions_agent or album in self._albums

    async def _part(self, file: Attachment) -> File | str:
        """The file, kept; or why it isn't."""
        name = file.named.name
        try:
            return await self._fetched(file, name)
        except NotFetched as error:
            return f"{name} wasn't taken in. {error}"
        except Disconnected:
            if not self._tries.over(file.file_id):
                raise
            return f"{name} wasn't taken in: Telegram doesn't give it."

    async def _fetched(self, file: Attachment, name: str) -> File:
        if file.file_size > LARGEST:
            raise NotFetched(f"It is larger than {LARGEST // 1024 // 1024} MB.")
        try:
            found = await reached(self._api.get_file(file.file_id))
        except BadRequest as error:
            raise NotFetched("Telegram doesn't give it.") from error
        async with fetching(found.file_path or "", Limits(trusted=self._base)) as chunks:
            return await self._files.keep(name, file.mime_type, chunks)

    def fits(self, text: str) -> bool:
        """Whether a text goes out as one message."""
        return fits(text)

    async def send(self, delivery: Delivery) -> str:
        """Send one message."""
        return await self._outgoing.send(delivery)

    async def edit(self, delivery: Delivery) -> None:
        """Replace the text of `delivery.message`."""
        await self._outgoing.edit(delivery)

    async def delete(self, address: Address, message: str) -> None:
        """Delete a message of ours; Telegram lets us within two days."""
        await self._chats.call(address, lambda chat: self._api.delete_message(chat, number(message)))

    async def typing(self, address: Address) -> None:
        """Show that somebody writes, for five seconds."""
        topic = thread(address)
        await self._chats.call(
            address, lambda chat: self._api.send_chat_action(chat, ChatAction.TYPING, message_thread_id=topic)
        )

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        """Open a topic; only this object remembers which key it was for, since Telegram lists no topics.

        Whoever asks may stop waiting: it is opened all the same, and is the one that they get when they ask again.
        """
        opening = self._opened.get(key)
        if opening is None:
            opening = self._opened[key] = asyncio.create_task(self._open(parent, title))
            opening.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(opening)

    async def _open(self, parent: Address, title: str) -> Address:
        name = title.strip()[:_LONGEST_TITLE] or "Session"
        try:
            topic = await self._chats.call(parent, lambda chat: self._api.create_forum_topic(chat, name))
        except SendNever as error:
            where = "this group: its settings turn them on, and the bot must be an admin who may manage them"
            if not parent.chat.startswith("-"):
                where = "private chats with this bot: @BotFather turns them on"
            raise SendNever(f"There are no topics in {where}. ({error})") from error
        return Address(parent.platform, parent.account, parent.space, parent.chat, str(topic.message_thread_id))

    def _forget(self, key: str, opening: asyncio.Task[Address]) -> None:
        """Let a topic that couldn't be opened be tried again."""
        if opening.cancelled() or opening.exception() is not None:
            del self._opened[key]


class TelegramByWebhook(Telegram):
    """Speaks to Telegram as one bot, and is called with what people say to it."""

    def __init__(
        self, account: str, token: Secret, files: Files, api: str = PUBLIC, *, webhook: str, **more: Any
    ) -> None:
        super().__init__(account, token, files, api, **more)
        self._url = f"{webhook}/in/telegram/{account}"
        self._secret = secret_of(token, account)

    def webhook(self, accept: Accept) -> ASGIApp:
        """An ASGI application that answers 2xx only after `accept` returned."""

        async def take(raw: Any) -> None:
            await self.take(raw, accept)

        return webhook(self._secret, take)

    async def run(self, intake: Intake) -> None:
        """Tell Telegram where to call, and see to it that it does; one call at a time keeps the order."""
        await self.who()
        told = self._api.set_webhook(self._url, secret_token=self._secret, allowed_updates=UPDATES, max_connections=1)
        try:
            await reached(told)
        except BadRequest as error:
            raise Disconnected(f"Telegram won't call {self._url}: {error.message}.") from error
        async with beside(f"the menu of telegram.{self.account}", self._fill_menu(intake.commands)):
            await self._look_after(intake)

    async def _look_after(self, intake: Intake) -> None:
        since = self._clock()
        while True:
            intake.connected()
            await asyncio.sleep(_LOOK)
            known = await reached(self._api.get_webhook_info())
            if known.url != self._url:
                raise Disconnected("Somebody else told Telegram to call elsewhere.")
            failed = known.last_error_date.timestamp() if known.last_error_date else 0.0
            if known.pending_update_count and failed > since:
                raise Disconnected(f"Telegram can't call {self._url}: {known.last_error_message}.")
