"""Messages to Slack: texts, buttons, files, and answers that one person sees.

Law: each message carries the key of its delivery in its metadata, so that after a crash it is found and not sent again.
"""

import contextlib
import time
from typing import Any

from segue.adapters.shared.attachments import content_of
from segue.adapters.shared.rates import Bucket, Limiter, Rate
from segue.adapters.slack.api import Api, Json
from segue.adapters.slack.incoming import View
from segue.adapters.slack.markup import escape, render
from segue.core.contracts.adapters import Files
from segue.core.contracts.database import Clock
from segue.core.lanes import Address
from segue.core.messages import Delivery
from segue.core.values import Value
from segue.errors import SendError, SendLater

_PATIENCE = 1.0
"""Seconds that a call waits for its turn by itself; for longer, the gateway does."""
_MARK = "segue_delivery"
PAGE, _MOST = 200, 2000
"""Messages of a history that are asked for at once, and in all."""
_LONGEST_BUTTON = 75
_THREADS = 1000


class Pace(Value, frozen=True):
    """The rates that Slack allows an app."""

    channel: Rate | Bucket = Rate(1, 1.0)
    edits: Bucket = Bucket(20, 1.2)
    growing: Bucket = Bucket(15, 1.2)
    """Of the edits, those of a reply that grows: the rest is kept for final texts."""


class Outgoing:
    """Sends what one app says."""

    def __init__(self, api: Api, files: Files, pace: Pace, view: View, clock: Clock = time.monotonic) -> None:
        self._api = api
        self._files = files
        self._pace = pace
        self._limiter = Limiter(clock, _PATIENCE)
        self._view = view
        self._statuses: dict[Address, str] = {}
        """What Slack shows of threads in the agent view."""

    async def send(self, delivery: Delivery) -> str:
        """Send one message."""
        there, text = delivery.address, await self._text(delivery)
        buttons = _buttons(delivery.choices)
        if delivery.only and not there.chat.startswith("D"):
            sent = await self._call(
                there, "chat.postEphemeral", user=delivery.only, text=text, thread_ts=there.thread or None, **buttons
            )
            return str(sent["message_ts"])
        message = await self.post(there, text, delivery.key, **buttons)
        await self._rest(delivery)
        return message

    async def post(self, there: Address, text: str, key: str, **fields: Any) -> str:
        """Write a message that can be found by its key."""
        metadata = {"event_type": _MARK, "event_payload": {"key": key}}
        # Slack would fetch what a link names, and so tell its server whatever the agent wrote into it.
        quiet = {"unfurl_links": False, "unfurl_media": False}
        sent = await self._call(
            there,
            "chat.postMessage",
            text=text,
            metadata=metadata,
            thread_ts=there.thread or None,
            **{**quiet, **fields},
        )
        return str(sent["ts"])

    async def edit(self, delivery: Delivery) -> None:
        """Replace the text of `delivery.message`."""
        buttons = _buttons(delivery.choices) or {"attachments": []}
        final = bool(delivery.attempt)
        await self._limiter.turn({"edits": self._pace.edits if final else self._pace.growing})
        text, there = await self._text(delivery), delivery.address
        try:
            await self._api.call("chat.update", channel=there.chat, ts=delivery.message, text=text, **buttons)
        except SendLater as error:
            self._limiter.quiet(error.seconds, "edits")
            raise
        await self._rest(delivery)

    async def find(self, delivery: Delivery) -> str | None:
        """The message that a delivery already made."""
        return await self.found(delivery.address, delivery.key, delivery.answers[-1] if delivery.answers else "")

    async def found(self, there: Address, key: str, after: str = "", most: int = _MOST) -> str | None:
        """The message with this key, among so many; it is younger than the one that it answers."""
        about: Json = {"channel": there.chat, "limit": PAGE, "include_all_metadata": True}
        if after.replace(".", "").isdecimal():
            about["oldest"] = after
        method = "conversations.replies" if there.thread else "conversations.history"
        if there.thread:
            about["ts"] = there.thread
        looked_at = 0
        async for message in self._api.pages(method, "messages", **about):
            metadata = message.get("metadata") or {}
            if metadata.get("event_type") == _MARK and (metadata.get("event_payload") or {}).get("key") == key:
                return str(message["ts"])
            looked_at += 1
            if looked_at >= most:
                break
        return None

    async def status(self, there: Address, status: str, title: str | None = None) -> None:
        """Show in the agent view whether the agent works on a thread, and its first title; nobody waits for that."""
        begun = there.thread and there.chat.startswith("D") and self._statuses.get(there) != status
        if self._view is View.AGENT and begun:
            if len(self._statuses) >= _THREADS:
                self._statuses.clear()
            self._statuses[there] = status
            with contextlib.suppress(SendError):
                about = {"channel_id": there.chat, "thread_ts": there.thread, "title": title}
                await self._api.call("agents.sessions.setStatus", status=status, **about)

    async def _rest(self, delivery: Delivery) -> None:
        if delivery.attempt:
            await self.status(delivery.address, "active")

    async def _text(self, delivery: Delivery) -> str:
        """The words of a message; a file is uploaded, and shared by the link to it that stands beneath them."""
        text = render(delivery.text) or escape(delivery.text)
        if delivery.file is None:
            return text
        uploaded = await self._api.upload(delivery.file.name, await content_of(self._files, delivery.file))
        link = f"<{uploaded.get('permalink')}|{escape(delivery.file.name)}>"
        return f"{text}\n{link}" if text else link

    async def _call(self, there: Address, method: str, **fields: Any) -> Json:
        """Write into a channel; if Slack asks for patience, the channel is left alone."""
        key = f"channel/{there.chat}"
        await self._limiter.turn({key: self._pace.channel})
        try:
            return await self._api.call(method, channel=there.chat, **fields)
        except SendLater as error:
            self._limiter.quiet(error.seconds, key)
            raise


def _buttons(choices: tuple[str, ...]) -> Json:
    """The choices as buttons beneath the text, which stays whole: a block of text holds less than a message."""
    fit = [choice for choice in choices if 0 < len(choice) <= _LONGEST_BUTTON]
    if not fit:
        return {}
    elements = [
        {
            "type": "button",
            "action_id": f"choice-{n}",
            "value": choice,
            "text": {"type": "plain_text", "text": choice.removeprefix("/").capitalize()},
        }
        for n, choice in enumerate(fit)
    ]
    return {"attachments": [{"fallback": ", ".join(fit), "blocks": [{"type": "actions", "elements": elements}]}]}
