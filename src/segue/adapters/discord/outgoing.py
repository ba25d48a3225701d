"""Messages to Discord: texts, buttons, files, and what only one person sees."""

import asyncio
import hashlib
import logging
import time
from typing import Any

from segue.adapters.discord.api import MESSAGE, MESSAGES, SAID_AFTER, Api
from segue.adapters.discord.incoming import moment, slash_token
from segue.adapters.discord.markup import render
from segue.adapters.shared.attachments import content_of
from segue.core.contracts.adapters import Files
from segue.core.contracts.database import Clock
from segue.core.lanes import Address
from segue.core.messages import Delivery
from segue.core.questions import buttons
from segue.errors import MessageGone, SendError, SendLater, SendNever

log = logging.getLogger(__name__)

_ANSWER = "/webhooks/{webhook_id}/{webhook_token}/messages/"
_QUIET = 1 << 2
"""Discord would fetch what a link names, and so tell its server whatever the agent wrote into it."""
_NOBODY: dict[str, Any] = {"parse": [], "replied_user": True}
"""Nobody is called by what an agent writes, @everyone least of all; only whoever is answered."""
_A_ROW, _ROWS = 5, 5
_LONGEST_BUTTON, _LONGEST_LABEL = 100, 80
_ACKNOWLEDGED = 10.0
"""Seconds after which a slash command that can't be answered never was acknowledged."""
_REMEMBERED = 120.0
"""Seconds for which Discord surely knows a nonce; it says "a few minutes"."""


class Outgoing:
    """Sends what one bot says."""

    def __init__(self, api: Api, files: Files, clock: Clock = time.time) -> None:
        self._api = api
        self._files = files
        self._clock = clock

    async def send(self, delivery: Delivery) -> str:
        """Send one message; Discord knows its nonce for some minutes, and after that it is looked for."""
        slash = slash_token(delivery.answered)
        if delivery.only:
            return await self._whisper(delivery, slash)
        channel = channel_of(delivery.address)
        found = await self._find(channel, delivery) if delivery.doubtful else ""
        message = found or await self._post(channel, delivery)
        if slash:
            await self._answered_aloud(slash)
        return message

    async def edit(self, delivery: Delivery) -> None:
        """Replace the text of a message, or make it a file: tried again, that changes the same message."""
        slash = slash_token(delivery.answered) if delivery.only else None
        if slash:
            await self._write("PATCH", f"{_ANSWER}{delivery.message}", delivery, await self._hook(slash))
        else:
            ids = {"channel_id": channel_of(delivery.address), "message_id": delivery.message}
            await self._write("PATCH", MESSAGE, delivery, ids)

    async def _post(self, channel: str, delivery: Delivery) -> str:
        known = {**_reply(delivery), "nonce": nonce(delivery.key), "enforce_nonce": True}
        return await self._write("POST", MESSAGES, delivery, {"channel_id": channel}, **known)

    async def _write(self, method: str, path: str, delivery: Delivery, ids: dict[str, Any], **more: Any) -> str:
        """Write a message, or write it anew; returns its id."""
        file, shown = delivery.file, _buttons(delivery.choices)
        body = {"content": render(delivery.text), "flags": _QUIET, "allowed_mentions": _NOBODY, "components": shown}
        upload = (file.name, await content_of(self._files, file)) if file else None
        return str((await self._api.call(method, path, body | more, file=upload, **ids))["id"])

    async def _find(self, channel: str, delivery: Delivery) -> str:
        """A message that an earlier attempt made, if Discord may have forgotten its nonce: ours, with the same words.

        It must be newer than what it answers; what answers nothing is sent again.
        """
        answered = _answered(delivery)
        if not answered or self._clock() - moment(answered) < _REMEMBERED:
            return ""
        me = str((await self._api.me()).id)
        wanted = (render(delivery.text), delivery.file.name if delivery.file else "")
        for message in await self._api.call("GET", SAID_AFTER, channel_id=channel, after=answered):
            files = [file.get("filename", "") for file in message.get("attachments", [])]
            if message["author"]["id"] == me and (message.get("content", ""), *files[:1], "")[:2] == wanted:
                return str(message["id"])
        return ""

    async def _whisper(self, delivery: Delivery, slash: tuple[str, str] | None) -> str:
        """Answer a slash command so that nobody else sees it; in private, if it can't be answered any more."""
        if slash:
            try:
                return await self._write("PATCH", f"{_ANSWER}@original", delivery, await self._hook(slash))
            except MessageGone as error:
                # It may be acknowledged at this moment: its answer was made durable by the same commit.
                if self._clock() - moment(slash[0]) < _ACKNOWLEDGED:
                    raise SendLater(str(error), 0.5) from error
        chat = await self._api.call("POST", "/users/@me/channels", {"recipient_id": delivery.only})
        return await self._post(str(chat["id"]), delivery)

    async def _answered_aloud(self, slash: tuple[str, str]) -> None:
        """Take back what only its person sees of a slash command, once everybody sees the answer."""
        for wait in (0.5, 1.0, 0.0):
            try:
                await self._api.call("DELETE", f"{_ANSWER}@original", **await self._hook(slash))
            except MessageGone:
                await asyncio.sleep(wait)  # It may be acknowledged at this moment.
                continue
            except SendError as error:
                log.info("a slash command stays as it is: %s", error)
            return

    async def _hook(self, slash: tuple[str, str]) -> dict[str, Any]:
        """The way to answer a slash command: the application's id, which isn't the bot's for the oldest ones."""
        return {"webhook_id": str((await self._api.client()).application_id), "webhook_token": slash[1]}


def channel_of(address: Address) -> str:
    """The channel or thread of an address, as Discord has it."""
    id = address.thread or address.chat
    if not (id.isascii() and id.isdecimal()):
        raise SendNever(f"{id!r} is no id of Discord's.")
    return id


def nonce(key: str) -> str:
    """The nonce of a key: Discord takes 25 characters."""
    return hashlib.sha256(key.encode()).hexdigest()[:25]


def _reply(delivery: Delivery) -> dict[str, Any]:
    """In a channel, what is answered is named: several people may have asked."""
    answered = _answered(delivery)
    if not delivery.address.space or not answered:
        return {}
    return {"message_reference": {"message_id": answered, "fail_if_not_exists": False}}


def _answered(delivery: Delivery) -> str:
    """The message that a delivery answers; empty if that was a button or a slash command."""
    answered = delivery.answered.partition(".")[0]
    return answered if answered.isdecimal() else ""


def _buttons(choices: tuple[str, ...]) -> list[dict[str, Any]]:
    fit = buttons(choices, _LONGEST_BUTTON)[: _A_ROW * _ROWS]
    shown = [{"type": 2, "style": 2, "label": words[:_LONGEST_LABEL], "custom_id": choice} for choice, words in fit]
    return [{"type": 1, "components": shown[n : n + _A_ROW]} for n in range(0, len(shown), _A_ROW)]
