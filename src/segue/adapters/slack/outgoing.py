"""Messages to Slack: texts, buttons, files, and answers that one person sees.

Law: each message carries the key of its delivery in its metadata, so that after a crash it is found and not sent again.
"""

import logging
from collections.abc import AsyncIterator
from typing import Any

from msgspec.structs import replace

from segue.adapters.shared.attachments import content_of
from segue.adapters.shared.decoding import text_in
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

log = logging.getLogger(__name__)

_PAGE, _MOST = 200, 2000
"""Messages of a history that are asked for at once, and in all."""
_LONGEST_BUTTON, _LONGEST_TITLE = 75, 200
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
        there = delivery.address
        ahead = delivery.text == PLACEHOLDER and not delivery.attempt
        if ahead and (begun := await self._agent.begin(delivery)):
            return begun
        fields = {"text": await self._text(delivery), **_buttons(delivery.choices)}
        if delivery.only and not there.chat.startswith("D"):
            return await self._whisper(delivery, fields)
        message = await self._post(there, delivery.key, **fields)
        await self._rest(delivery)
        return message

    async def _whisper(self, delivery: Delivery, fields: Json) -> str:
        """Show something to one person alone; in their private chat, if the app or the person isn't in the channel."""
        there, user = delivery.address, delivery.only
        try:
            return str((await self._write("chat.postEphemeral", there, user=user, **fields))["message_ts"])
        except SendNever as error:
            log.info("what one person alone is to see goes to their private chat: %s", error)
        return await self._post(replace(there, chat=user, thread=""), delivery.key, **fields)

    async def open(self, parent: Address, title: str, key: str) -> Address:
        """Post the root of a thread, unless it is there already."""
        name, key = title.strip()[:_LONGEST_TITLE] or "Session", f"thread/{key}"
        # Whoever died while opening one opens it again soon.
        known = [str(one["ts"]) async for one in self._said(parent, most=_PAGE) if _key(one) == key]
        opened = replace(parent, thread=known[0] if known else await self._post(parent, key, text=escape(name)))
        await self._agent.status(opened, READY, name)
        return opened

    async def edit(self, delivery: Delivery) -> None:
        final = bool(delivery.attempt)
        marked = {"metadata": _marked(delivery.key)} if final else {}
        if final and await self._agent.finish(delivery, **marked):
            return
        async with self._limiter.paced({"edits": self._pace.edits if final else self._pace.growing}):
            about = {"channel": delivery.address.chat, "ts": delivery.message, "text": await self._text(delivery)}
            await self._update(delivery, {**about, "attachments": [], **_buttons(delivery.choices), **marked})
        await self._rest(delivery)

    async def _update(self, delivery: Delivery, fields: Json) -> None:
        try:
            await self._api.call("chat.update", **fields)
        except SendNever:
            if not self._agent.is_shown:
                raise
            # A process that died may have left a stream that goes on, and can't be edited.
            await self._agent.stop(delivery)
            await self._api.call("chat.update", **fields)

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

    def _said(self, there: Address, after: str = "", most: int = _MOST) -> AsyncIterator[Json]:
        """What stands somewhere, with its metadata."""
        about: Json = {"channel": there.chat, "limit": _PAGE, "include_all_metadata": True, "ts": there.thread or None}
        about |= {"oldest": after} if after.replace(".", "").isdecimal() else {}
        method = "conversations.replies" if there.thread else "conversations.history"
        return self._api.pages(method, "messages", most=most, **about)

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

    async def _post(self, there: Address, key: str, **fields: Any) -> str:
        """Write a message that can be found by its key."""
        return str((await self._write("chat.postMessage", there, metadata=_marked(key), **_QUIET, **fields))["ts"])

    async def _write(self, method: str, there: Address, **fields: Any) -> Json:
        """Write into a channel; if Slack asks for patience, the channel is left alone."""
        async with self._limiter.paced({f"channel/{there.chat}": self._pace.channel}):
            return await self._api.call(method, channel=there.chat, thread_ts=there.thread or None, **fields)


def _marked(key: str) -> Json:
    return {"event_type": "segue_delivery", "event_payload": {"key": key}}


def _key(message: Json) -> str:
    """The key of the delivery that made a message; empty for others."""
    return text_in(message, "metadata", "event_payload", "key")


def _buttons(choices: tuple[str, ...]) -> Json:
    """The choices as buttons beneath the text, which stays whole: a block of text holds less than a message."""
    elements = [
        {"type": "button", "action_id": f"choice-{n}", "value": choice, "text": {"type": "plain_text", "text": words}}
        for n, (choice, words) in enumerate(buttons(choices, _LONGEST_BUTTON))
    ]
    shown = {"fallback": ", ".join(choices), "blocks": [{"type": "actions", "elements": elements}]}
    return {"attachments": [shown]} if elements else {}
