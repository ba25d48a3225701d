"""The Discord adapter: one object per account, which follows the gateway and speaks by the API."""

import asyncio
import logging
import re
import time
from collections.abc import Sequence
from typing import Any, Literal

from segue.adapters.discord.api import MESSAGE, MESSAGES, PUBLIC, SAID_AFTER, Api
from segue.adapters.discord.channels import Channels, nonce
from segue.adapters.discord.gateway import Gateway
from segue.adapters.discord.incoming import Incoming, moment, slash_token
from segue.adapters.discord.markup import fits, mention, render
from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import Attachments, content_of
from segue.adapters.shared.background import beside
from segue.adapters.shared.downloads import Limits
from segue.adapters.shared.outcomes import connecting
from segue.adapters.shared.threads import Openings
from segue.core.commands import Spec
from segue.core.contracts.adapters import Connection, Files, Intake
from segue.core.lanes import Address
from segue.core.messages import Delivery, Sending
from segue.core.questions import buttons
from segue.core.values import Secret
from segue.errors import MessageGone, SendError, SendLater, SendNever

log = logging.getLogger(__name__)

_ANSWER = "/webhooks/{webhook_id}/{webhook_token}/messages/"
_QUIET = 1 << 2
"""Discord would fetch what a link names, and so tell its server whatever the agent wrote into it."""
_NOBODY: dict[str, Any] = {"parse": [], "replied_user": True}
"""Nobody is called by what an agent writes, @everyone least of all; only whoever is answered."""
_A_ROW, _ROWS = 5, 5
_LONGEST_BUTTON, _LONGEST_LABEL = 100, 80
_LONGEST_OF_MENU, _STRING = 100, 3
_NAME = re.compile(r"[-_a-z0-9]{1,32}")
_ACKNOWLEDGED = 10.0
"""Seconds after which a slash command that can't be answered never was acknowledged."""
_REMEMBERED = 120.0
"""Seconds for which Discord surely knows a nonce; it says "a few minutes"."""


class Discord:
    """Speaks to Discord as one bot."""

    platform = "discord"
    sending = Sending.KEYED
    connection = Connection.ONE
    buttons: Literal[True] = True
    largest_file = 10 * 1000 * 1000
    """Bytes of a file that a bot may send anywhere."""

    def __init__(self, account: str, token: Secret, files: Files, api: str = PUBLIC) -> None:
        self.account = account
        self._own = Account(self.platform, account)
        self._api = Api(token, api)
        self._files = files
        self._attachments = Attachments(files, Limits(trusted=api))
        self._channels = Channels(self._own, self._api)
        self._openings = Openings()
        self.fits = fits
        self.mention = mention

    async def close(self) -> None:
        """Let go of the connections."""
        self._openings.close()
        await self._api.close()

    async def run(self, intake: Intake) -> None:
        """Follow the gateway until cancelled; its position moves on once everything before it was accepted."""
        with connecting():
            me = str((await self._api.me()).id)
            incoming = Incoming(self._own, self._api, self._channels, self._attachments, me, intake.accept)
            async with beside(f"the menu of {self._own}", lambda: self._fill_menu(intake.commands)):
                await Gateway(self._api, incoming).follow(intake)

    async def _fill_menu(self, commands: Sequence[Spec]) -> None:
        if menu := [_listed(spec) for spec in commands if _NAME.fullmatch(spec.name)]:
            path, ours = "/applications/{application_id}/commands", (await self._api.client()).application_id
            await self._api.call("PUT", path, menu[:_LONGEST_OF_MENU], application_id=str(ours))

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
        known: dict[str, Any] = {"nonce": nonce(delivery.key), "enforce_nonce": True}
        if delivery.address.space and (answered := _answered(delivery)):
            # In a channel, what is answered is named: several people may have asked.
            known["message_reference"] = {"message_id": answered, "fail_if_not_exists": False}
        return await self._write("POST", MESSAGES, delivery, {"channel_id": channel}, **known)

    async def _write(self, method: str, path: str, delivery: Delivery, ids: dict[str, Any], **more: Any) -> str:
        """Write a message, or write it anew; returns its id."""
        file, shown = delivery.file, _buttons(delivery.choices)
        body = {"content": render(delivery.text), "flags": _QUIET, "allowed_mentions": _NOBODY, "components": shown}
        upload = (file.name, await content_of(self._files, file)) if file else None
        return str((await self._api.call(method, path, body | more, file=upload, **ids))["id"])

    async def _find(self, channel: str, delivery: Delivery) -> str:
        """Our message with the same words after what it answers, once Discord may have forgotten the nonce."""
        answered = _answered(delivery)
        if not answered or time.time() - moment(answered) < _REMEMBERED:
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
                if time.time() - moment(slash[0]) < _ACKNOWLEDGED:
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

    def whispers_to(self, message: str) -> bool:
        """Whether an answer to a message can be seen by its person alone: to a slash command it can."""
        return slash_token(message) is not None

    async def delete(self, address: Address, message: str) -> None:
        """Delete a message of ours."""
        await self._api.call("DELETE", MESSAGE, channel_id=channel_of(address), message_id=message)

    async def typing(self, address: Address) -> None:
        """Show that somebody writes, for ten seconds."""
        await self._api.call("POST", "/channels/{channel_id}/typing", channel_id=channel_of(address))

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        """Open a thread in a channel, or a post in a forum; beside a thread, in the channel around it."""
        return await self._openings.open(key, lambda: self._channels.open(channel_of(parent), title.strip(), key))


def channel_of(address: Address) -> str:
    """The channel or thread of an address, as Discord has it."""
    id = address.thread or address.chat
    if not (id.isascii() and id.isdecimal()):
        raise SendNever(f"{id!r} is no id of Discord's.")
    return id


def _answered(delivery: Delivery) -> str:
    """The message that a delivery answers; empty if that was a button or a slash command."""
    answered = delivery.answered.partition(".")[0]
    return answered if answered.isdecimal() else ""


def _buttons(choices: tuple[str, ...]) -> list[dict[str, Any]]:
    fit = buttons(choices, _LONGEST_BUTTON)[: _A_ROW * _ROWS]
    shown = [{"type": 2, "style": 2, "label": words[:_LONGEST_LABEL], "custom_id": choice} for choice, words in fit]
    return [{"type": 1, "components": shown[n : n + _A_ROW]} for n in range(0, len(shown), _A_ROW)]


def _listed(spec: Spec) -> dict[str, Any]:
    """A command as Discord's menu has it; what may follow it is one field."""
    says = spec.does[:_LONGEST_OF_MENU]
    words = [{"type": _STRING, "name": "text", "description": spec.usage[:_LONGEST_OF_MENU], "required": False}]
    return {"name": spec.name, "description": says, "type": 1, "options": words if spec.usage else []}
