"""Messages to Telegram: texts, buttons and files.

In a group, a command that nobody else saw can be answered for a few seconds so that nobody else sees that either. After
them, or where Telegram refuses it, the answer comes in the person's private chat.
"""

import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from segue.adapters.shared.attachments import content_of
from segue.adapters.shared.markup import utf16
from segue.adapters.shared.web import Upload
from segue.adapters.telegram.api import EPHEMERAL, PRIVATE, Api, NoPhoto, Unchanged, Unreadable
from segue.adapters.telegram.markup import render, rich, visible
from segue.core.contracts.adapters import Files
from segue.core.messages import Delivery, File
from segue.core.questions import label
from segue.core.text.splitting import MessageRoom
from segue.errors import MessageGone, SendNever

log = logging.getLogger(__name__)

_LONGEST, _LONGEST_CAPTION = 4096, 1024
"""UTF-16 units of a text, and of one beneath a file."""
_LONGEST_BUTTON = 64
"""Bytes of what a button says when it is pressed."""
_NEAR = 8
"""Messages after one that is answered, among which a lost placeholder is looked for."""
_LARGEST_PHOTO = 10 * 1024 * 1024
_PHOTOS = {"image/jpeg", "image/png", "image/webp"}
_QUIET = {"is_disabled": True}
"""Telegram would fetch what a link names, and so tell its server whatever the agent wrote into it."""


class Outgoing:
    """Sends what one bot says."""

    def __init__(self, files: Files, api: Api, *, rich: bool) -> None:
        self._files = files
        self._api = api
        self._rich = rich

    async def send(self, delivery: Delivery) -> str:
        """Send one message; what one person alone is to see goes to their private chat, if it can't be done here."""
        try:
            return await self._send(delivery)
        except SendNever as error:
            # Whoever speaks as a group or a channel has no private chat: everybody in it would be told.
            if not delivery.only or delivery.only.startswith("-"):
                raise
            log.info("what one person alone is to see goes to their private chat: %s", error)
        private = replace(delivery.address, chat=delivery.only, thread="")
        return f"{PRIVATE}.{delivery.only}.{await self._send(replace(delivery, address=private, answers=(), only=''))}"

    async def _send(self, delivery: Delivery) -> str:
        address, file = delivery.address, delivery.file
        call = partial(self._api.call_in, address)
        told: dict[str, Any] = {"message_thread_id": address.thread or None, "reply_parameters": _reply(delivery)}
        if delivery.only:
            told["ephemeral_message_parameters"] = {"receiver_user_id": int(delivery.only)}
        if file is None:
            await self._api.turn(address, "sends")
            sent = await self._say(delivery, partial(call, "sendMessage", **told))
        else:
            await self._api.turn(address, "files")
            told |= {"reply_markup": _buttons(delivery.choices), **_caption(delivery.text)}
            sent = await self._put(file, lambda kind, up: call(f"send{kind.capitalize()}", files={kind: up}, **told))
        seen_by_one = sent.get("ephemeral_message_id")
        return f"{EPHEMERAL}.{delivery.only}.{seen_by_one}" if seen_by_one else str(sent["message_id"])

    async def edit(self, delivery: Delivery) -> None:
        """Replace the text of `delivery.message`, or make it a file: tried again, that changes the same message."""
        await self._api.turn(delivery.address, "edits")
        change = partial(self._api.change, delivery.address, delivery.message, "edit")
        with contextlib.suppress(Unchanged):
            if (file := delivery.file) is not None:
                media = {"media": "attach://file", **_caption(delivery.text)}
                put = partial(change, "Media", reply_markup=_buttons(delivery.choices))
                await self._put(file, lambda kind, upload: put(files={"file": upload}, media={"type": kind, **media}))
            else:
                html = rich(delivery.text) if self._rich and delivery.attempt else ""
                await self._say(delivery, partial(change, "Text"), html)

    async def _put(self, file: File, put: Callable[[str, Upload], Awaitable[Any]]) -> Any:
        """Put a file there: a picture as one, if Telegram takes it for one (it may be too tall, or broken)."""
        content = await content_of(self._files, file)
        if file.media in _PHOTOS and len(content) <= _LARGEST_PHOTO:
            try:
                return await put("photo", (file.name, content))
            except NoPhoto as error:
                log.info("a picture goes out as a document: %s", error)
        return await put("document", (file.name, content))

    async def is_placeholder(self, delivery: Delivery, message: str) -> bool:
        """Whether a message is ours and says so: an edit that would change nothing is refused as such.

        It is asked of ids alone that are no known message of ours, so that no other one is overwritten.
        """
        await self._api.turn(delivery.address, "edits")
        try:
            await self._say(delivery.placeholder, partial(self._api.change, delivery.address, message, "edit", "Text"))
        except Unchanged:
            return True
        except SendNever:
            return False
        return True

    async def _say(self, delivery: Delivery, call: Callable[..., Awaitable[Any]], richly: str = "") -> Any:
        """Say a text in the best form that Telegram takes: rich, if it is final, with its marks, or as it is."""
        say = partial(call, reply_markup=_buttons(delivery.choices))
        if richly:
            try:
                return await say(rich_message={"html": richly})
            except (Unchanged, MessageGone):
                raise
            except SendNever as error:
                log.warning("a rich message was refused, so it is sent as a plain one: %s", error)
                # A server of the Bot API's that doesn't know rich messages misses the text.
                self._rich = "message text is empty" not in str(error)
        html = render(delivery.text)
        seen = visible(html)
        try:
            if utf16(seen) <= _LONGEST:
                return await say(text=html, parse_mode="HTML", link_preview_options=_QUIET)
        except Unreadable:
            log.exception("what was rendered can't be read by Telegram, so it is sent as it is")
        plain = delivery.text if utf16(delivery.text) <= _LONGEST else seen
        return await say(text=plain, link_preview_options=_QUIET)


fits = MessageRoom(
    _LONGEST,
    most=lambda text: 2 * utf16(text),
    size=lambda text: utf16(visible(render(text))),
    readable=3 * _LONGEST,
)
"""The room of a message, of which the visible part counts. Half as long a text goes out at worst without marks."""


def ids_after(delivery: Delivery) -> Sequence[str]:
    """The ids of messages that followed what a delivery answers: Telegram counts those of a chat."""
    answered = delivery.answered.partition(".")[0]
    return [str(int(answered) + n) for n in range(1, _NEAR + 1)] if answered.isdecimal() else []


def _reply(delivery: Delivery) -> dict[str, Any] | None:
    """In a group, what is answered is named: several people may have asked."""
    kind, *rest = delivery.answered.split(".")
    if delivery.only and kind == EPHEMERAL:
        return {"ephemeral_message_id": int(rest[0])}
    if not delivery.address.chat.startswith("-") or not kind.isdecimal():
        return None
    return {"message_id": int(kind), "allow_sending_without_reply": True}


def _caption(text: str) -> dict[str, str]:
    """The words beneath a file: as plain text if that is longer than it may be."""
    html = render(text)
    if utf16(visible(html)) <= _LONGEST_CAPTION:
        return {"caption": html, "parse_mode": "HTML"}
    return {"caption": text[: _LONGEST_CAPTION // 2]}


def _buttons(choices: tuple[str, ...]) -> dict[str, Any] | None:
    fit = [choice for choice in choices if 0 < len(choice.encode()) <= _LONGEST_BUTTON]
    rows = [[{"text": label(choice), "callback_data": choice}] for choice in fit]
    return {"inline_keyboard": rows} if rows else None
