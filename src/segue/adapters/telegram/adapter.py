"""The Telegram adapter: one object per account, which polls for updates or is called with them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import msgspec
from telegram import (
    BotCommand,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    InputMediaDocument,
    InputMediaPhoto,
    LinkPreviewOptions,
    Message,
    ReplyParameters,
)
from telegram.constants import ChatAction, ParseMode
from telegram.error import BadRequest, ChatMigrated, TelegramError

from segue.adapters.download import LARGEST, Limits, NotFetched, fetching
from segue.adapters.limits import Limiter, Rate
from segue.adapters.telegram.api import PUBLIC, UPDATES, Api, NoFileThere, Unchanged, Unreadable, reached, sent
from segue.adapters.telegram.incoming import Attachment, Heard, Me, Update, decode, read
from segue.adapters.telegram.markup import render, utf16, visible
from segue.adapters.telegram.webhook import Webhook, secret_of
from segue.core.commands import Spec
from segue.core.contracts import Accept, Clock, Connection, Cursor, Files, Letter, Longest, Measure
from segue.core.lanes import Address
from segue.core.messages import PLACEHOLDER, Arrival, Delivery, File, Notice, Part, Sending
from segue.core.secret import Secret
from segue.core.values import Value
from segue.errors import Disconnected, Invalid, SendLater, SendNever

T = TypeVar("T")
log = logging.getLogger(__name__)

_LONGEST_TITLE = 128
_LONGEST_CAPTION = 1024
_LONGEST_BUTTON = 64
"""Bytes of what a button says when it is pressed."""
_LARGEST_PHOTO = 10 * 1024 * 1024
_PHOTOS = {"image/jpeg", "image/png", "image/webp"}
_TRIES = 3
"""How often a file is tried before the message is taken in without it."""
_PATIENCE = 1.0
"""Seconds that a call waits for its turn by itself; for longer, the gateway does."""
_LOOK = 60.0
"""Seconds between two looks at whether Telegram still calls."""
_QUIET = LinkPreviewOptions(is_disabled=True)
"""Telegram would fetch what a link names, and so tell its server whatever the agent wrote into it."""


class Pace(Value, frozen=True):
    """What Telegram allows a bot."""

    overall: Rate = Rate(30, 1.0)
    chat: Rate = Rate(1, 1.0)
    group: Rate = Rate(20, 60.0)
    edits: Rate = Rate(1, 1.0)
    group_edits: Rate = Rate(1, 3.0)
    """As many as new messages, but apart: a reply that grows mustn't have to wait a minute for its end."""


class Telegram:
    """Speaks to Telegram as one bot, and polls for what people say to it."""

    platform = "telegram"
    sending = Sending.EDIT
    connection = Connection.ONE
    largest_file = 50 * 1000 * 1000
    """What a bot may send."""
    longest = Longest(4096, Measure.UTF16)

    def __init__(
        self,
        account: str,
        token: Secret,
        files: Files,
        api: str = PUBLIC,
        *,
        pace: Pace = Pace(),  # noqa: B008 -- frozen
        clock: Clock = time.time,
    ) -> None:
        self.account = account
        self._token = token
        self._base = api
        self._api = Api(token, api)
        self._files = files
        self._pace = pace
        self._clock = clock
        self._limiter = Limiter()
        self._me: Me | None = None
        self._opened: dict[str, asyncio.Task[Address]] = {}
        self._moved: dict[str, str] = {}
        """Groups that became supergroups, and so have another id."""
        self._failed: Counter[str] = Counter()

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

    async def show_commands(self, commands: Sequence[Spec]) -> None:
        """Fill the menu."""
        menu = [BotCommand(spec.name, spec.does[:256]) for spec in commands]
        await reached(self._api.set_my_commands(menu))

    async def arrivals(self, accept: Accept, cursor: Cursor) -> None:
        """Poll until cancelled; the offset, which makes Telegram forget, follows what was accepted."""
        await self.who()
        await reached(self._api.delete_webhook())
        offset: int | None = None
        while True:
            updates = await reached(self._api.updates(offset))
            await cursor.keep("")  # Telegram itself keeps how far we came.
            # After an empty answer nothing is left to forget; the ids may begin anew after a quiet week.
            offset = None
            for raw in updates:
                await self.take(raw, accept)
                if isinstance(raw, dict) and isinstance(number := raw.get("update_id"), int):
                    offset = number + 1

    async def take(self, raw: Any, accept: Accept) -> None:
        """Take one update in."""
        me = await self.who()
        try:
            update = decode(raw)
            heard = read(update, raw, self.account, me, self._clock())
        except Invalid as error:
            await accept(Letter(self.platform, self.account, json.dumps(raw), str(error)))
            return
        self._remember(update)
        if heard is None:
            return
        await accept(await self._whole(heard))
        if heard.callback:
            try:
                await self._api.answer_callback_query(heard.callback)
            except TelegramError as error:
                log.info("a button stays pressed: %s", type(error).__name__)

    def _remember(self, update: Update) -> None:
        if update.message is not None and update.message.became:
            old, new = update.message.became
            self._moved[old] = new
        change = update.my_chat_member
        if change is not None and change.chat.type != "private" and (change.begins or change.ends):
            became = "was brought into" if change.begins else "was removed from"
            chat, by = change.chat, change.sender
            log.warning(
                "telegram.%s %s the %s %r (%d) by %d", self.account, became, chat.type, chat.title, chat.id, by.id
            )

    async def _whole(self, heard: Heard) -> Arrival:
        """An arrival with its files, and with the other id of a group that became a supergroup."""
        arrival = heard.arrival
        parts = [await self._part(file) for file in heard.attachments]
        chat = arrival.place.address.chat
        aliases = tuple(old if new == chat else new for old, new in self._moved.items() if chat in {old, new})
        return msgspec.structs.replace(arrival, parts=(*arrival.parts, *parts), chat_aliases=aliases)

    async def _part(self, file: Attachment) -> Part:
        name = file.file_name or "file"
        try:
            return await self._fetched(file, name)
        except NotFetched as error:
            return Notice(f"{name} wasn't taken in. {error}")
        except Disconnected:
            self._failed[file.file_id] += 1
            if self._failed[file.file_id] < _TRIES:
                raise
            del self._failed[file.file_id]
            return Notice(f"{name} wasn't taken in: Telegram doesn't give it.")

    async def _fetched(self, file: Attachment, name: str) -> File:
        if file.file_size > LARGEST:
            raise NotFetched(f"It is larger than {LARGEST // 1024 // 1024} MB.")
        try:
            found = await reached(self._api.get_file(file.file_id))
        except BadRequest as error:
            raise NotFetched("Telegram doesn't give it.") from error
        async with fetching(found.file_path or "", Limits(trusted=self._base)) as chunks:
            return await self._files.keep(name, file.mime_type, chunks)

    async def send(self, delivery: Delivery) -> str:
        """Send one message; what it comes with, beside a placeholder, comes with the edit."""
        ahead = delivery.text == PLACEHOLDER
        thread, buttons = _thread(delivery.address), None if ahead else _buttons(delivery.choices)

        async def say(chat: int, text: str, mode: str | None) -> Message:
            return await self._api.send_message(
                chat,
                text,
                parse_mode=mode,
                message_thread_id=thread,
                reply_parameters=_reply(delivery),
                reply_markup=buttons,
                link_preview_options=_QUIET,
            )

        await self._turn(delivery.address, self._pace.chat, self._pace.group, "sends")
        message = await self._write(delivery, say)
        if not ahead:
            await self._attach(delivery)
        return str(message.message_id)

    async def edit(self, delivery: Delivery) -> None:
        """Replace the text of `delivery.message`; its file becomes part of it, several follow it."""
        await self._turn(delivery.address, self._pace.edits, self._pace.group_edits, "edits")
        with contextlib.suppress(NoFileThere):
            if await self._put_in(delivery):
                return
        number, buttons = _number(delivery.message), _buttons(delivery.choices)

        async def say(chat: int, text: str, mode: str | None) -> Message | bool:
            return await self._api.edit_message_text(
                text, chat, number, parse_mode=mode, reply_markup=buttons, link_preview_options=_QUIET
            )

        with contextlib.suppress(Unchanged):
            await self._write(delivery, say)
        await self._attach(delivery)

    async def _put_in(self, delivery: Delivery) -> bool:
        """Make a message its one file, with the text beneath: tried again, that changes the same message.

        False if it isn't one file, or the text doesn't fit.
        """
        longest = max(utf16(delivery.text), utf16(visible(render(delivery.text))))
        if len(delivery.files) != 1 or longest > _LONGEST_CAPTION:
            return False
        [file], number, buttons = delivery.files, _number(delivery.message), _buttons(delivery.choices)
        content = await self._read(file)
        kind = InputMediaPhoto if _is_photo(file, content) else InputMediaDocument

        async def say(chat: int, text: str, mode: str | None) -> Message | bool:
            media = kind(content, caption=text, parse_mode=mode, filename=file.name)
            return await self._api.edit_message_media(media, chat, number, reply_markup=buttons)

        with contextlib.suppress(Unchanged):
            await self._write(delivery, say)
        return True

    async def typing(self, address: Address) -> None:
        """Show that somebody writes, for five seconds."""
        thread = _thread(address)
        await self._to(
            address, lambda chat: self._api.send_chat_action(chat, ChatAction.TYPING, message_thread_id=thread)
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
            topic = await self._to(parent, lambda chat: self._api.create_forum_topic(chat, name))
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

    async def _write(self, delivery: Delivery, say: Callable[[int, str, str | None], Awaitable[T]]) -> T:
        """Say a text as HTML; as plain text if that is longer than it may be, or can't be read."""
        address = delivery.address
        text = delivery.text or ", ".join(file.name for file in delivery.files)
        html = render(text)
        seen = visible(html)
        try:
            if seen.strip() and utf16(seen) <= self.longest.count:
                return await self._to(address, lambda chat: say(chat, html, ParseMode.HTML))
        except Unreadable:
            log.exception("what was rendered can't be read by Telegram, so it is sent as it is")
        return await self._to(address, lambda chat: say(chat, text, None))

    async def _attach(self, delivery: Delivery) -> None:
        for file in delivery.files:
            await self._to(delivery.address, await self._upload(delivery.address, file))

    async def _upload(self, address: Address, file: File) -> Callable[[int], Awaitable[Message]]:
        content = await self._read(file)
        await self._turn(address, self._pace.chat, self._pace.group, "files")
        upload, thread = InputFile(content, filename=file.name), _thread(address)
        if _is_photo(file, content):
            return lambda chat: self._api.send_photo(chat, upload, message_thread_id=thread)
        return lambda chat: self._api.send_document(chat, upload, message_thread_id=thread)

    async def _read(self, file: File) -> bytes:
        try:
            return await self._files.read(file)
        except Invalid as error:
            raise SendNever(str(error)) from error

    async def _to(self, address: Address, call: Callable[[int], Awaitable[T]]) -> T:
        """Call for a chat, by the id that it has now."""
        try:
            return await sent(call(self._chat(address)))
        except ChatMigrated as moved:
            self._moved[address.chat] = str(moved.new_chat_id)
            return await sent(call(moved.new_chat_id))

    async def _turn(self, address: Address, chat: Rate, group: Rate, kind: str) -> None:
        """Wait until Telegram allows one more call."""
        wanted = {"overall": self._pace.overall, f"{kind}/{address.chat}": chat}
        if address.chat.startswith("-"):
            wanted[f"{kind}/group/{address.chat}"] = group
        while wait := self._limiter.take(wanted, time.monotonic()):
            if wait > _PATIENCE:
                raise SendLater("Telegram allows no more messages there for now.", wait)
            await asyncio.sleep(wait)

    def _chat(self, address: Address) -> int:
        return _number(self._moved.get(address.chat, address.chat))


class TelegramByWebhook(Telegram):
    """Speaks to Telegram as one bot, and is called with what people say to it."""

    def __init__(
        self, account: str, token: Secret, files: Files, api: str = PUBLIC, *, webhook: str, **more: Any
    ) -> None:
        super().__init__(account, token, files, api, **more)
        self._url = f"{webhook}/in/telegram/{account}"
        self._secret = secret_of(token, account)

    def webhook(self, accept: Accept) -> Webhook:
        """An ASGI application that answers 2xx only after `accept` returned."""

        async def take(raw: Any) -> None:
            await self.take(raw, accept)

        return Webhook(self._secret, take)

    async def arrivals(self, accept: Accept, cursor: Cursor) -> None:
        """Tell Telegram where to call, and see to it that it does; one call at a time keeps the order."""
        del accept
        await self.who()
        told = self._api.set_webhook(self._url, secret_token=self._secret, allowed_updates=UPDATES, max_connections=1)
        try:
            await reached(told)
        except BadRequest as error:
            raise Disconnected(f"Telegram won't call {self._url}: {error.message}.") from error
        since = self._clock()
        while True:
            await cursor.keep("")
            await asyncio.sleep(_LOOK)
            known = await reached(self._api.get_webhook_info())
            if known.url != self._url:
                raise Disconnected("Somebody else told Telegram to call elsewhere.")
            failed = known.last_error_date.timestamp() if known.last_error_date else 0.0
            if known.pending_update_count and failed > since:
                raise Disconnected(f"Telegram can't call {self._url}: {known.last_error_message}.")


def _number(id: str) -> int:
    try:
        return int(id)
    except ValueError as error:
        raise SendNever(f"{id!r} is no id of Telegram's.") from error


def _is_photo(file: File, content: bytes) -> bool:
    return file.media in _PHOTOS and len(content) <= _LARGEST_PHOTO


def _thread(address: Address) -> int | None:
    return _number(address.thread) if address.thread else None


def _reply(delivery: Delivery) -> ReplyParameters | None:
    """In a group, what is answered is named: several people may have asked."""
    answered = delivery.answers[-1].partition(".")[0] if delivery.answers else ""
    if not delivery.address.chat.startswith("-") or not answered.isdecimal():
        return None
    return ReplyParameters(int(answered), allow_sending_without_reply=True)


def _buttons(choices: tuple[str, ...]) -> InlineKeyboardMarkup | None:
    fit = [choice for choice in choices if 0 < len(choice.encode()) <= _LONGEST_BUTTON]
    rows = [[InlineKeyboardButton(choice.removeprefix("/").capitalize(), callback_data=choice)] for choice in fit]
    return InlineKeyboardMarkup(rows) if rows else None
