"""Messages to Feishu: rich texts, cards that stream or have buttons, files, and threads.

Law: each message carries the key of its delivery, by which Feishu knows it for an hour; after that it is looked for
among what was said since the message that it answers.

Law: the changes of a card are numbered, each above the last, whoever makes them; so a number is the time, in tenths of
a second, which is also how many Feishu takes. A card streams from its first text until its final one, which replaces
all of it and ends that in one call: whoever takes over a reply sends the final text, and so ends its card.
"""

import hashlib
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from segue.adapters.feishu.api import Api, OutOfOrder, StreamEnded
from segue.adapters.feishu.markup import in_post, render
from segue.adapters.feishu.messages import Json, decode, text_of
from segue.adapters.shared.attachments import content_of
from segue.adapters.shared.lookups import Recent
from segue.adapters.shared.rates import Limiter, Rate
from segue.core.contracts.adapters import Files
from segue.core.contracts.database import Clock
from segue.core.lanes import Address, Kind
from segue.core.messages import PLACEHOLDER, Delivery, File
from segue.core.questions import buttons
from segue.core.values import Value
from segue.errors import MessageGone, SendNever

_PATIENCE = 1.0
"""Seconds that a call waits for its turn by itself; for longer, the gateway does."""
_REMEMBERED = 3500.0
"""Seconds for which Feishu surely knows a key."""
_LONGEST_TITLE, _LONGEST_BUTTON, _LONGEST_SUMMARY = 200, 200, 60
_LARGEST_PICTURE = 10 * 1024 * 1024
_PICTURES = {"image/jpeg", "image/png", "image/webp", "image/gif"}
_spoken = partial(re.compile(r"\W+").sub, "")
"""The letters and digits of a text: Feishu gives its marks back in another form."""
_TEXT = "text"
"""The id of the text in each card."""
_TICKS, _NUMBERS = 10, 1 << 31
_AHEAD = 3600 * _TICKS
"""As far as the clock of another machine may be ahead."""


class Pace(Value, frozen=True):
    """The rates that Feishu allows an app."""

    chat: Rate = Rate(5, 1.0)
    card: Rate = Rate(10, 1.0)


PACE = Pace()


@dataclass
class _Card:
    """The card that a message is, with the number of its last change; its id is empty, if the message is none."""

    id: str
    last: int = 0


class Outgoing:
    """Sends what one app says."""

    def __init__(self, api: Api, files: Files, pace: Pace, clock: Clock) -> None:
        self._api = api
        self._files = files
        self._pace = pace
        self._clock = clock
        self._limiter = Limiter(patience=_PATIENCE)
        self.sent = Recent[str, _Card]()
        """The messages that were sent or changed not long ago, with their cards."""

    async def send(self, delivery: Delivery) -> str:
        if delivery.doubtful and (found := await self._found(delivery)):
            return found
        if delivery.file is not None:
            return await self._send_file(delivery, delivery.file, delivery.key)
        text, card, kind = render(delivery.text), "", "post"
        content = _post(text)
        if delivery.text == PLACEHOLDER or delivery.choices:
            shown = _shown(text, delivery, streams=not delivery.choices)
            card, kind = str((await self._api.call("POST", "/cardkit/v1/cards", shown))["card_id"]), "interactive"
            content = {"type": "card", "data": {"card_id": card}}
        message = await self._post(delivery, kind, content, delivery.key)
        self.sent[message] = _Card(card)
        return message

    async def edit(self, delivery: Delivery) -> None:
        """Replace the text of `delivery.message`; what isn't final grows, where it is a card."""
        file = delivery.file
        text = render(delivery.text or (file.name if file else ""))
        card = await self._card(delivery.message)
        whole = {"card": _shown(text, delivery, streams=not delivery.attempt)}
        if not card.id:
            changed = {"msg_type": "post", "content": _encoded(_post(text))}
            await self._api.call("PUT", f"/im/v1/messages/{delivery.message}", changed)
        elif delivery.attempt:
            await self._change(card, "", whole)
        else:
            try:
                await self._change(card, f"/elements/{_TEXT}/content", {"content": text})
            except StreamEnded:
                await self._change(card, "", whole)
        if file is not None:
            await self._send_file(delivery.with_text(""), file, f"{delivery.key}/file")

    async def _card(self, message: str) -> _Card:
        """The card that a message is, as Feishu says; else the one that was made for it."""
        card = self.sent.get(message)
        if card is None or (card.id and not card.last):
            # An earlier attempt may have sent the message with another card.
            try:
                found = await self._api.call("POST", "/cardkit/v1/cards/id_convert", {"message_id": message})
            except MessageGone:
                raise
            except SendNever:
                found = {}
            card = self.sent[message] = _Card(str(found.get("card_id") or (card.id if card else "")))
        return card

    async def _change(self, card: _Card, path: str, body: Json, ahead: int = 0) -> None:
        await self._limiter.turn({f"card/{card.id}": self._pace.card})
        tick = int(self._clock() * _TICKS) % _NUMBERS
        card.last = min(max(tick, card.last + ahead + 1), _NUMBERS - 1)
        try:
            await self._api.call("PUT", f"/cardkit/v1/cards/{card.id}{path}", {**body, "sequence": card.last})
        except OutOfOrder:
            if ahead:
                raise
            # Somebody else changed it whose clock is ahead.
            await self._change(card, path, body, _AHEAD)

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        """Post the thread's root, of which the same key gives the same one; what is sent to the thread answers it."""
        title = title.strip()[:_LONGEST_TITLE] or "Session"
        delivery = Delivery("", parent.outside, "", 0, title, key)
        return replace(parent, thread=await self._post(delivery, "post", _post(render(title)), f"thread/{key}"))

    async def _send_file(self, delivery: Delivery, file: File, key: str) -> str:
        """Send a file, and after it the words that go with it."""
        content = await content_of(self._files, file)
        kind = "image" if file.media in _PICTURES and len(content) <= _LARGEST_PICTURE else "file"
        fields = {"image_type": "message"} if kind == "image" else {"file_type": "stream", "file_name": file.name}
        uploaded = await self._api.call("POST", f"/im/v1/{kind}s", fields, files={kind: (file.name, content)})
        message = await self._post(delivery, kind, {f"{kind}_key": uploaded[f"{kind}_key"]}, key)
        if delivery.text:
            await self._post(delivery, "post", _post(render(delivery.text)), f"{key}/text")
        return message

    async def _post(self, delivery: Delivery, kind: str, content: Json, key: str) -> str:
        """Write into a chat or a thread; in a group, in answer to who asked, as several people may have."""
        there, asked = delivery.address, delivery.answered.partition("/")[0]
        # Feishu takes keys of 50 characters at most.
        body = {"msg_type": kind, "content": _encoded(content), "uuid": hashlib.sha256(key.encode()).hexdigest()[:40]}
        known = [there.thread] if there.thread else []
        if asked.startswith("om_") and (there.thread or await self._api.kind(there.chat) is not Kind.DM):
            known.append(asked)
        for message in known:
            # Whoever asked, or began the thread, may have taken that back: they are answered all the same.
            with suppress(MessageGone):
                return await self._call(there, f"/{message}/reply", {**body, "reply_in_thread": bool(there.thread)})
        if there.thread:
            raise SendNever("The message that the thread begins with is gone.")
        return await self._call(there, "?receive_id_type=chat_id", {**body, "receive_id": there.chat})

    async def _call(self, there: Address, path: str, body: Json) -> str:
        """Write; if Feishu asks for patience, the chat is left alone."""
        async with self._limiter.paced({f"chat/{there.chat}": self._pace.chat}):
            return str((await self._api.call("POST", f"/im/v1/messages{path}", body))["message_id"])

    async def _found(self, delivery: Delivery) -> str:
        """A message that an earlier attempt made, if Feishu may have forgotten its key: ours, with the same words.

        It must be newer than what it answers; what answers nothing, and a file, is sent again.
        """
        asked, wanted = delivery.answered.partition("/")[0], _spoken(render(delivery.text))
        answered = await self._api.fetch(asked) if asked and wanted and delivery.file is None else []
        if not answered or self._clock() - answered[0].at < _REMEMBERED:
            return ""
        thread = answered[0].thread_id
        where = ("thread", thread) if thread else ("chat", delivery.address.chat)
        for one in map(decode, await self._api.newest(*where, answered[0].at)):
            if one.at >= answered[0].at and one.author == self._api.app and _spoken(text_of(one)) == wanted:
                return one.message_id
        return ""


def _post(text: str) -> Json:
    return {"zh_cn": {"content": [[{"tag": "md", "text": in_post(text)}]]}}


def _shown(text: str, delivery: Delivery, *, streams: bool) -> Json:
    """A card with a text, and buttons beneath it; each says what was chosen, and where."""
    elements: list[Json] = [{"tag": "markdown", "element_id": _TEXT, "content": text}]
    for choice, words in buttons(delivery.choices, _LONGEST_BUTTON):
        pressed = [{"type": "callback", "value": {"choice": choice, "thread": delivery.address.thread}}]
        elements.append({"tag": "button", "text": {"tag": "plain_text", "content": words}, "behaviors": pressed})
    config: Json = {"update_multi": True, "streaming_mode": streams, "enable_forward_interaction": False}
    if not streams:
        config["summary"] = {"content": text[:_LONGEST_SUMMARY]}
    return {"type": "card_json", "data": _encoded({"schema": "2.0", "config": config, "body": {"elements": elements}})}


def _encoded(content: Json) -> str:
    return json.dumps(content, ensure_ascii=False)
