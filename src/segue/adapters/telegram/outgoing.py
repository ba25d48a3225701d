"""What goes out to Telegram: texts, buttons and files."""

import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from telegram import (
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    InputMediaDocument,
    InputMediaPhoto,
    LinkPreviewOptions,
    Message,
    ReplyParameters,
)
from telegram.constants import ParseMode

from segue.adapters.telegram.api import Api, NoFileThere, Unchanged, Unreadable
from segue.adapters.telegram.chats import Chats, number, thread
from segue.adapters.telegram.markup import render, utf16, visible
from segue.core.contracts.adapters import Files
from segue.core.messages import Delivery, File
from segue.core.text.markdown import READABLE
from segue.errors import Invalid, SendNever

T = TypeVar("T")
log = logging.getLogger(__name__)

LONGEST = 4096
"""UTF-16 units of a text."""
_LONGEST_CAPTION = 1024
_LONGEST_BUTTON = 64
"""Bytes of what a button says when it is pressed."""
_LARGEST_PHOTO = 10 * 1024 * 1024
_PHOTOS = {"image/jpeg", "image/png", "image/webp"}
_QUIET = LinkPreviewOptions(is_disabled=True)
"""Telegram would fetch what a link names, and so tell its server whatever the agent wrote into it."""


class Outgoing:
    """Sends what one bot says."""

    def __init__(self, api: Api, files: Files, chats: Chats) -> None:
        self._api = api
        self._files = files
        self._chats = chats

    async def send(self, delivery: Delivery) -> str:
        """Send one message."""
        if delivery.file is not None:
            return await self._upload(delivery, delivery.file)
        topic, buttons = thread(delivery.address), _buttons(delivery.choices)

        async def say(chat: int, text: str, mode: str | None) -> Message:
            return await self._api.send_message(
                chat,
                text,
                parse_mode=mode,
                message_thread_id=topic,
                reply_parameters=_reply(delivery),
                reply_markup=buttons,
                link_preview_options=_QUIET,
            )

        await self._chats.turn_to_send(delivery.address)
        return str((await self._write(delivery, say)).message_id)

    async def edit(self, delivery: Delivery) -> None:
        """Replace the text of `delivery.message`, or make it a file: tried again, that changes the same message."""
        await self._chats.turn_to_edit(delivery.address)
        if delivery.file is not None:
            try:
                await self._put_in(delivery, delivery.file)
            except NoFileThere:
                await self._put_after(delivery, delivery.file)
            return
        message, buttons = number(delivery.message), _buttons(delivery.choices)

        async def say(chat: int, text: str, mode: str | None) -> Message | bool:
            return await self._api.edit_message_text(
                text, chat, message, parse_mode=mode, reply_markup=buttons, link_preview_options=_QUIET
            )

        with contextlib.suppress(Unchanged):
            await self._write(delivery, say)

    async def _put_in(self, delivery: Delivery, file: File) -> None:
        message, buttons = number(delivery.message), _buttons(delivery.choices)
        content, (caption, mode) = await self._read(file), _caption(delivery.text)
        kind = InputMediaPhoto if _is_photo(file, content) else InputMediaDocument
        media = kind(content, caption=caption, parse_mode=mode, filename=file.name)
        with contextlib.suppress(Unchanged):
            await self._chats.call(
                delivery.address, lambda chat: self._api.edit_message_media(media, chat, message, reply_markup=buttons)
            )

    async def _put_after(self, delivery: Delivery, file: File) -> None:
        """Let a message name the file that follows it, on a server that can't put one into a text."""
        await self.edit(msgspec.structs.replace(delivery, text=delivery.text or file.name, file=None))
        await self._upload(delivery.with_text(""), file)

    async def _upload(self, delivery: Delivery, file: File) -> str:
        content, (caption, mode) = await self._read(file), _caption(delivery.text)
        await self._chats.turn_to_send(delivery.address, "files")
        upload = InputFile(content, filename=file.name)
        send = self._api.send_photo if _is_photo(file, content) else self._api.send_document
        topic, buttons = thread(delivery.address), _buttons(delivery.choices)
        sent = await self._chats.call(
            delivery.address,
            lambda chat: send(
                chat, upload, caption=caption, parse_mode=mode, message_thread_id=topic, reply_markup=buttons
            ),
        )
        return str(sent.message_id)

    async def _write(self, delivery: Delivery, say: Callable[[int, str, str | None], Awaitable[T]]) -> T:
        """Say a text as HTML; as plain text if that is longer than it may be, or can't be read."""
        address = delivery.address
        html = render(delivery.text)
        seen = visible(html)
        try:
            if seen.strip() and utf16(seen) <= LONGEST:
                return await self._chats.call(address, lambda chat: say(chat, html, ParseMode.HTML))
        except Unreadable:
            log.exception("what was rendered can't be read by Telegram, so it is sent as it is")
        text = delivery.text if utf16(delivery.text) <= LONGEST else seen
        return await self._chats.call(address, lambda chat: say(chat, text, None))

    async def _read(self, file: File) -> bytes:
        try:
            return await self._files.read(file)
        except Invalid as error:
            raise SendNever(str(error)) from error


def fits(text: str) -> bool:
    """Whether a text goes out as one message: what is seen of it counts, and of a text that shows nothing all of it."""
    if 2 * utf16(text) <= LONGEST:
        return True  # at worst without its marks
    if len(text) > READABLE:
        return False
    seen = visible(render(text))
    return utf16(seen if seen.strip() else text) <= LONGEST


def _caption(text: str) -> tuple[str, str | None]:
    """What stands beneath a file, and how it is marked up: as plain text if that is longer than it may be."""
    html = render(text)
    if utf16(visible(html)) <= _LONGEST_CAPTION:
        return html, ParseMode.HTML
    return text[: _LONGEST_CAPTION // 2], None


def _is_photo(file: File, content: bytes) -> bool:
    return file.media in _PHOTOS and len(content) <= _LARGEST_PHOTO


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
