"""Messages to Slack: texts, buttons, files, and answers that one person sees.

Law: each message carries the key of its delivery in its metadata, so that after a crash it is found and not sent again.
"""

from collections.abc import AsyncIterator
from typing import Any

from segue.adapters.shared.attachments import content_of
from segue.adapters.shared.rates import Bucket, Limiter, Rate
from segue.adapters.slack.agent_view import READY, AgentView
from segue.adapters.slack.api import Api, Json
from segue.adapters.slack.markup import escape, render
from segue.core.contracts.adapters import Files
from segue.core.lanes import Address
from segue.core.messages import PLACEHOLDER, Delivery
from segue.core.questions import buttons
from segue.core.values import Value
from segue.errors import SendNever

_MARK = "segue_delivery"
_PAGE, _MOST = 200, 2000
"""Messages of a history that are asked for at once, and in all."""
_LONGEST_BUTTON = 75
_QUIET = {"unfurl_links": False, "unfurl_media": False}
"""Slack would fetch what a link names, and so tell its server whatever the agent wrote into it."""


class Pace(Value, frozen=True):
    """The rates that Slack allows an app."""

    channel: Rate | Bucket = Rate(1, 1.0)
    edits: Bucket = Bucket(20, 1.2)
    growing: Bucket = Bucket(15, 1.2)
    """Of the edits, those of a reply that grows: the rest is kept for final texts."""


class Outgoing:
    """Sends what one app says."""

    def __init__(self, api: Api, files: Files, pace: Pace, limiter: Limiter, agent: AgentView) -> None:
        self._api = api
        self._files = files
        self._pace = pace
        self._limiter = limiter
        self._agent = agent

    async def send(self, delivery: Delivery) -> str:
        """Send one message."""
        there = delivery.address
        ahead = delivery.text == PLACEHOLDER and not delivery.attempt
        if ahead and (begun := await self._agent.begin(delivery)):
            return begun
        text, shown = await self._text(delivery), _buttons(delivery.choices)
        if delivery.only and not there.chat.startswith("D"):
            sent = await self._call(
                there, "chat.postEphemeral", user=delivery.only, text=text, thread_ts=there.thread or None, **shown
            )
            return str(sent["message_ts"])
        message = await self.post(there, text, delivery.key, **shown)
        await self._rest(delivery)
        return message

    async def post(self, there: Address, text: str, key: str, **fields: Any) -> str:
        """Write a message that can be found by its key."""
        about = {"text": text, "metadata": _marked(key), "thread_ts": there.thread or None}
        return str((await self._call(there, "chat.postMessage", **about, **_QUIET, **fields))["ts"])

    async def edit(self, delivery: Delivery) -> None:
        """Replace the text of `delivery.message`."""
        final = bool(delivery.attempt)
        if final and await self._agent.finish(delivery, metadata=_marked(delivery.key)):
            return
        async with self._limiter.paced({"edits": self._pace.edits if final else self._pace.growing}):
            text = await self._text(delivery)
            fields = {"text": text, "attachments": [], **_buttons(delivery.choices)}
            fields |= {"metadata": _marked(delivery.key)} if final else {}
            await self._update(delivery, fields)
        await self._rest(delivery)

    async def _update(self, delivery: Delivery, fields: Json) -> None:
        about = {"channel": delivery.address.chat, "ts": delivery.message, **fields}
        try:
            await self._api.call("chat.update", **about)
        except SendNever:
            if not self._agent.is_shown:
                raise
            # A process that died may have left a stream that goes on, and can't be edited.
            await self._agent.end(delivery)
            await self._api.call("chat.update", **about)

    async def find(self, delivery: Delivery) -> str | None:
        """The message that a delivery already made; it is younger than the one that it answers."""
        me = await self._api.who()
        async for message in self._said(delivery.address, delivery.answered):
            key = _key(message)
            # What a stream is for stands in it only when it is over.
            streamed = "streaming_state" in message and message.get("user") == me
            if (streamed and not key and delivery.text == PLACEHOLDER) or key == delivery.key:
                return str(message["ts"])
        return None

    async def root(self, there: Address, key: str) -> str | None:
        """The root of a thread that was opened a moment ago."""
        async for message in self._said(there, most=_PAGE):
            if _key(message) == key:
                return str(message["ts"])
        return None

    async def _said(self, there: Address, after: str = "", most: int = _MOST) -> AsyncIterator[Json]:
        """What stands somewhere, with its metadata."""
        about: Json = {"channel": there.chat, "limit": _PAGE, "include_all_metadata": True}
        about |= {"oldest": after} if after.replace(".", "").isdecimal() else {}
        about |= {"ts": there.thread} if there.thread else {}
        method = "conversations.replies" if there.thread else "conversations.history"
        looked_at = 0
        async for message in self._api.pages(method, "messages", **about):
            yield message
            looked_at += 1
            if looked_at >= most:
                return

    async def _rest(self, delivery: Delivery) -> None:
        if delivery.attempt:
            await self._agent.status(delivery.address, READY)

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
        async with self._limiter.paced({f"channel/{there.chat}": self._pace.channel}):
            return await self._api.call(method, channel=there.chat, **fields)


def _marked(key: str) -> Json:
    return {"event_type": _MARK, "event_payload": {"key": key}}


def _key(message: Json) -> str:
    """The key of the delivery that made a message; empty for others."""
    metadata = message.get("metadata") or {}
    return str((metadata.get("event_payload") or {}).get("key", "")) if metadata.get("event_type") == _MARK else ""


def _buttons(choices: tuple[str, ...]) -> Json:
    """The choices as buttons beneath the text, which stays whole: a block of text holds less than a message."""
    elements = [
        {"type": "button", "action_id": f"choice-{n}", "value": choice, "text": {"type": "plain_text", "text": words}}
        for n, (choice, words) in enumerate(buttons(choices, _LONGEST_BUTTON))
    ]
    shown = {"fallback": ", ".join(choices), "blocks": [{"type": "actions", "elements": elements}]}
    return {"attachments": [shown]} if elements else {}
