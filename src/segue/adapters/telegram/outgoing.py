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
from segue.adapters.telegram.api import NoRichThere, Unchanged, Unreadable
from segue.adapters.telegram.chats import EDITS, EPHEMERAL, FILES, PRIVATE, SENDS, Chats, number, thread
from segue.adapters.telegram.markup import render, rich, visible
from segue.core.contracts.adapters import Files
from segue.core.messages import Delivery, File
from segue.core.questions import label
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
        """Send one message; what one person alone is to see goes to their private chat, if it can't be done here."""
        try:
            return await self._send(delivery)
        except SendNever as error:
            if not delivery.only:
                raise
            log.info("what one person alone is to see goes to their private chat: %s", error)
        private = replace(delivery.address, chat=delivery.only, thread="")
        return f"{PRIVATE}.{delivery.only}.{await self._send(replace(delivery, address=private, answers=(), only=''))}"

    async def _send(self, delivery: Delivery) -> str:
        address, file = delivery.address, delivery.file
        call = partial(self._chats.call, address, message_thread_id=thread(address), reply_parameters=_reply(delivery))
        if delivery.only:
            call = partial(call, ephemeral_message_parameters={"receiver_user_id": number(delivery.only)})
        if file is None:
            await self._chats.turn(address, SENDS)
            sent = await _written(delivery, partial(call, "sendMessage"))
        else:
            content = await content_of(self._files, file)
            await self._chats.turn(address, FILES)
            kind, buttons = _kind(file, content), _buttons(delivery.choices)
            told = {"reply_markup": buttons, **_caption(delivery.text)}
            sent = await call(f"send{kind.capitalize()}", files={kind: (file.name, content)}, **told)
        seen_by_one = sent.get("ephemeral_message_id")
        return f"{EPHEMERAL}.{delivery.only}.{seen_by_one}" if seen_by_one else str(sent["message_id"])

    async def edit(self, delivery: Delivery) -> None:
        """Replace the text of `delivery.message`, or make it a file: tried again, that changes the same message."""
        await self._chats.turn(delivery.address, EDITS)
        change = partial(self._chats.change, delivery.address, delivery.message, "edit")
        with contextlib.suppress(Unchanged):
            if (file := delivery.file) is not None:
                content = await content_of(self._files, file)
                media = {"type": _kind(file, content), "media": "attach://file", **_caption(delivery.text)}
                buttons = _buttons(delivery.choices)
                await change("Media", files={"file": (file.name, content)}, media=media, reply_markup=buttons)
            elif not await self._enriched(delivery, partial(change, "Text")):
                await _written(delivery, partial(change, "Text"))

    async def _enriched(self, delivery: Delivery, change: Callable[..., Awaitable[Any]]) -> bool:
        """Make a final text a rich message, where it has something to show for it and Telegram takes it."""
        html = rich(delivery.text) if self._rich and delivery.attempt else ""
        if not html:
            return False
        try:
            await change(rich_message={"html": html}, reply_markup=_buttons(delivery.choices))
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
            await _written(delivery.placeholder, partial(self._chats.change, delivery.address, message, "edit", "Text"))
        except Unchanged:
            return True
        except SendNever:
            return False
        return True


async def _written(delivery: Delivery, call: Callable[..., Awaitable[Any]]) -> Any:
    """Say a text as HTML; as plain text if that is longer than it may be, or can't be read."""
    say = partial(call, reply_markup=_buttons(delivery.choices), link_preview_options=_QUIET)
    html = render(delivery.text)
    seen = visible(html)
    try:
        if seen.strip() and utf16(seen) <= LONGEST:
            return await say(text=html, parse_mode="HTML")
    except Unreadable:
        log.exception("what was rendered can't be read by Telegram, so it is sent as it is")
    return await say(text=delivery.text if utf16(delivery.text) <= LONGEST else seen)


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
    answered = _answered(delivery)[0]
    return [str(int(answered) + n) for n in range(1, _NEAR + 1)] if answered.isdecimal() else []


def _answered(delivery: Delivery) -> list[str]:
    """The parts of the id of what a delivery answers."""
    return delivery.answered.split(".")


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
    kind, *rest = _answered(delivery)
    if delivery.only and kind == EPHEMERAL:
        return {"ephemeral_message_id": number(rest[0])}
    if not delivery.address.chat.startswith("-") or not kind.isdecimal():
        return None
    return {"message_id": int(kind), "allow_sending_without_reply": True}


def _buttons(choices: tuple[str, ...]) -> dict[str, Any] | None:
    fit = [choice for choice in choices if 0 < len(choice.encode()) <= _LONGEST_BUTTON]
    rows = [[{"text": label(choice), "callback_data": choice}] for choice in fit]
    return {"inline_keyboard": rows} if rows else None
