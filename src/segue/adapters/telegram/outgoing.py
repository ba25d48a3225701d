"""Messages to Telegram: texts, buttons and files."""

import contextlib
import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from segue.adapters.shared.attachments import content_of
from segue.adapters.telegram.api import NoFileThere, NoRichThere, Unchanged, Unreadable
from segue.adapters.telegram.chats import EDITS, FILES, SENDS, Chats, number, thread
from segue.adapters.telegram.markup import render, utf16, visible
from segue.adapters.telegram.rich import rich
from segue.core.contracts.adapters import Files
from segue.core.messages import Delivery, File
from segue.core.text.markdown import READABLE
from segue.errors import MessageGone, SendNever

log = logging.getLogger(__name__)

LONGEST = 4096
"""UTF-16 units of a text."""
_LONGEST_CAPTION = 1024
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

    def __init__(self, files: Files, chats: Chats, *, rich: bool) -> None:
        self._rich = rich
        self._files = files
        self._chats = chats

    async def send(self, delivery: Delivery) -> str:
        """Send one message."""
        if delivery.file is not None:
            return await self._upload(delivery, delivery.file)
        await self._chats.turn(delivery.address, SENDS)
        where = {"message_thread_id": thread(delivery.address), "reply_parameters": _reply(delivery)}
        return str((await self._write(delivery, "sendMessage", **where))["message_id"])

    async def edit(self, delivery: Delivery) -> None:
        """Replace the text of `delivery.message`, or make it a file: tried again, that changes the same message."""
        await self._chats.turn(delivery.address, EDITS)
        message = number(delivery.message)
        with contextlib.suppress(Unchanged):
            if delivery.file is None:
                if not await self._enriched(delivery, message):
                    await self._write(delivery, "editMessageText", message_id=message)
                return
            try:
                await self._put_in(delivery, delivery.file, message)
            except NoFileThere:
                await self._put_after(delivery, delivery.file)

    async def _enriched(self, delivery: Delivery, message: int) -> bool:
        """Make a final text a rich message, where it has something to show for it and Telegram takes it."""
        html = rich(delivery.text) if self._rich and delivery.attempt else ""
        if not html:
            return False
        buttons = _buttons(delivery.choices)
        try:
            await self._chats.call(
                delivery.address,
                "editMessageText",
                message_id=message,
                rich_message={"html": html},
                reply_markup=buttons,
            )
        except (Unchanged, MessageGone):
            raise
        except NoRichThere:
            self._rich = False
            return False
        except SendNever as error:
            log.warning("a rich message was refused, so it is sent as a plain one: %s", error)
            return False
        return True

    async def is_placeholder(self, delivery: Delivery, message: str) -> bool:
        """Whether a message is ours and says so: an edit that would change nothing is refused as such.

        It is asked of ids alone that are no known message of ours, so that no other one is overwritten.
        """
        await self._chats.turn(delivery.address, EDITS)
        try:
            await self._write(delivery.placeholder, "editMessageText", message_id=number(message))
        except Unchanged:
            return True
        except SendNever:
            return False
        return True

    async def _put_in(self, delivery: Delivery, file: File, message: int) -> None:
        content = await content_of(self._files, file)
        media = {"type": _kind(file, content), "media": "attach://file", **_caption(delivery.text)}
        attached = {"file": (file.name, content)}
        markup = _buttons(delivery.choices)
        await self._chats.call(
            delivery.address, "editMessageMedia", files=attached, media=media, message_id=message, reply_markup=markup
        )

    async def _put_after(self, delivery: Delivery, file: File) -> None:
        """Let a message name the file that follows it, on a server that can't put one into a text."""
        await self.edit(msgspec.structs.replace(delivery, text=delivery.text or file.name, file=None))
        await self._upload(delivery.with_text(""), file)

    async def _upload(self, delivery: Delivery, file: File) -> str:
        content = await content_of(self._files, file)
        await self._chats.turn(delivery.address, FILES)
        kind = _kind(file, content)
        sent = await self._chats.call(
            delivery.address,
            f"send{kind.capitalize()}",
            files={kind: (file.name, content)},
            message_thread_id=thread(delivery.address),
            reply_markup=_buttons(delivery.choices),
            **_caption(delivery.text),
        )
        return str(sent["message_id"])

    async def _write(self, delivery: Delivery, method: str, **fields: Any) -> Any:
        """Say a text as HTML; as plain text if that is longer than it may be, or can't be read."""
        fields |= {"reply_markup": _buttons(delivery.choices), "link_preview_options": _QUIET}
        html = render(delivery.text)
        seen = visible(html)
        try:
            if seen.strip() and utf16(seen) <= LONGEST:
                return await self._chats.call(delivery.address, method, text=html, parse_mode="HTML", **fields)
        except Unreadable:
            log.exception("what was rendered can't be read by Telegram, so it is sent as it is")
        text = delivery.text if utf16(delivery.text) <= LONGEST else seen
        return await self._chats.call(delivery.address, method, text=text, **fields)


def fits(text: str) -> bool:
    """Whether a text goes out as one message: what is seen of it counts, and of a text that shows nothing all of it."""
    if 2 * utf16(text) <= LONGEST:
        return True  # at worst without its marks
    if len(text) > READABLE:
        return False
    seen = visible(render(text))
    return utf16(seen if seen.strip() else text) <= LONGEST


def ids_after(delivery: Delivery) -> Sequence[str]:
    """The ids of messages that followed what a delivery answers: Telegram counts those of a chat."""
    answered = delivery.answers[-1].partition(".")[0] if delivery.answers else ""
    return [str(int(answered) + n) for n in range(1, _NEAR + 1)] if answered.isdecimal() else []


def _caption(text: str) -> dict[str, str]:
    """The words beneath a file: as plain text if that is longer than it may be."""
    html = render(text)
    if utf16(visible(html)) <= _LONGEST_CAPTION:
        return {"caption": html, "parse_mode": "HTML"}
    return {"caption": text[: _LONGEST_CAPTION // 2]}


def _kind(file: File, content: bytes) -> str:
    return "photo" if file.media in _PHOTOS and len(content) <= _LARGEST_PHOTO else "document"


def _reply(delivery: Delivery) -> dict[str, Any] | None:
    """In a group, what is answered is named: several people may have asked."""
    answered = delivery.answers[-1].partition(".")[0] if delivery.answers else ""
    if not delivery.address.chat.startswith("-") or not answered.isdecimal():
        return None
    return {"message_id": int(answered), "allow_sending_without_reply": True}


def _buttons(choices: tuple[str, ...]) -> dict[str, Any] | None:
    fit = [choice for choice in choices if 0 < len(choice.encode()) <= _LONGEST_BUTTON]
    rows = [[{"text": choice.removeprefix("/").capitalize(), "callback_data": choice}] for choice in fit]
    return {"inline_keyboard": rows} if rows else None
