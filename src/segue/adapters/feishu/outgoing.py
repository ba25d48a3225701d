"""Messages to Feishu: rich texts, cards, files, and threads.

Law: each message carries the key of its delivery, by which Feishu knows it for an hour; after that it is looked for
among what was said since the message that it answers.
"""

import hashlib
import json
import re

from segue.adapters.feishu.api import Api, Json
from segue.adapters.feishu.cards import Cards, shown
from segue.adapters.feishu.directory import Directory
from segue.adapters.feishu.markup import in_post, render
from segue.adapters.feishu.messages import decode, text_of
from segue.adapters.shared.attachments import content_of
from segue.adapters.shared.rates import Limiter, Rate
from segue.core.contracts.adapters import Files
from segue.core.contracts.database import Clock
from segue.core.lanes import Address, Kind
from segue.core.messages import PLACEHOLDER, Delivery, File
from segue.core.values import Value
from segue.errors import MessageGone, SendNever

_PATIENCE = 1.0
"""Seconds that a call waits for its turn by itself; for longer, the gateway does."""
_REMEMBERED = 3500.0
"""Seconds for which Feishu surely knows a key."""
_LONGEST_TITLE = 200
_LARGEST_PICTURE = 10 * 1024 * 1024
_PICTURES = {"image/jpeg", "image/png", "image/webp", "image/gif"}
_SILENT = re.compile(r"\W+")


class Pace(Value, frozen=True):
    """The rates that Feishu allows an app."""

    chat: Rate = Rate(5, 1.0)
    card: Rate = Rate(10, 1.0)


class Outgoing:
    """Sends what one app says."""

    def __init__(self, api: Api, files: Files, directory: Directory, pace: Pace, clock: Clock) -> None:
        self._api = api
        self._files = files
        self._directory = directory
        self._pace = pace
        self._clock = clock
        self._limiter = Limiter(patience=_PATIENCE)
        self._cards = Cards(api, self._limiter, pace.card, clock)
        self.is_own = self._cards.knows

    async def send(self, delivery: Delivery) -> str:
        """Send one message."""
        if delivery.doubtful and (found := await self._found(delivery)):
            return found
        if delivery.file is not None:
            return await self._send_file(delivery, delivery.file, delivery.key)
        text = render(delivery.text)
        if delivery.text != PLACEHOLDER and not delivery.choices:
            message = await self._post(delivery, "post", _post(text), delivery.key)
            self._cards.sent(message)
            return message
        card = shown(text, delivery.address.thread, delivery.choices, streams=not delivery.choices)
        made = await self._cards.make(card)
        message = await self._post(delivery, "interactive", {"type": "card", "data": {"card_id": made}}, delivery.key)
        self._cards.sent(message, made)
        return message

    async def edit(self, delivery: Delivery) -> None:
        """Replace the text of `delivery.message`; what isn't final grows, where it is a card."""
        file, text = delivery.file, render(delivery.text)
        if file is not None:
            text = text or render(file.name)
        card = await self._cards.of(delivery.message)
        whole = shown(text, delivery.address.thread, delivery.choices, streams=not delivery.attempt)
        if not card.id:
            changed = {"msg_type": "post", "content": _encoded(_post(text))}
            await self._api.call("PUT", f"/im/v1/messages/{delivery.message}", changed)
        elif delivery.attempt:
            await self._cards.replace(card, whole)
        else:
            await self._cards.grow(card, text, whole)
        if file is not None:
            await self._send_file(delivery.with_text(""), file, f"{delivery.key}/file")

    async def open(self, parent: Address, title: str, key: str) -> str:
        """Post the root of a thread; the same key gives the same one."""
        title = title.strip()[:_LONGEST_TITLE] or "Session"
        return await self._post(Delivery("", parent, "", 0, title, key), "post", _post(render(title)), f"thread/{key}")

    async def _send_file(self, delivery: Delivery, file: File, key: str) -> str:
        """Send a file, and after it the words that go with it."""
        content = await content_of(self._files, file)
        if file.media in _PICTURES and len(content) <= _LARGEST_PICTURE:
            fields, name, path = {"image_type": "message"}, "image", "/im/v1/images"
        else:
            fields, name, path = {"file_type": "stream", "file_name": file.name}, "file", "/im/v1/files"
        uploaded = await self._api.upload(path, fields, {name: (file.name, content)})
        message = await self._post(delivery, name, {f"{name}_key": uploaded[f"{name}_key"]}, key)
        if delivery.text:
            await self._post(delivery, "post", _post(render(delivery.text)), f"{key}/text")
        return message

    async def _post(self, delivery: Delivery, kind: str, content: Json, key: str) -> str:
        """Write into a chat or a thread; in a group, in answer to who asked, as several people may have."""
        there, answered = delivery.address, delivery.answered
        # Feishu takes keys of 50 characters at most.
        uuid = hashlib.sha256(key.encode()).hexdigest()[:40]
        body = {"msg_type": kind, "content": _encoded(content), "uuid": uuid}
        if there.thread:
            return await self._call(there, f"/{there.thread}/reply", {**body, "reply_in_thread": True})
        if answered.startswith("om_") and await self._directory.kind(there.chat) is not Kind.DM:
            try:
                return await self._call(there, f"/{answered.partition('/')[0]}/reply", body)
            except MessageGone:
                """Whoever asked took it back: they are answered all the same."""
        return await self._call(there, "?receive_id_type=chat_id", {**body, "receive_id": there.chat})

    async def _call(self, there: Address, path: str, body: Json) -> str:
        """Write; if Feishu asks for patience, the chat is left alone."""
        async with self._limiter.paced({f"chat/{there.chat}": self._pace.chat}):
            return str((await self._api.call("POST", f"/im/v1/messages{path}", body))["message_id"])

    async def _found(self, delivery: Delivery) -> str:
        """A message that an earlier attempt made, if Feishu may have forgotten its key: ours, with the same words.

        It must be newer than what it answers; what answers nothing, and a file, is sent again.
        """
        if delivery.file is not None or not delivery.answers:
            return ""
        try:
            answered = await self._directory.fetch(delivery.answered)
        except SendNever:
            return ""
        if not answered or self._clock() - answered[0].at < _REMEMBERED:
            return ""
        thread, wanted = answered[0].thread_id, _spoken(render(delivery.text))
        async for raw in self._directory.newest("thread" if thread else "chat", thread or delivery.address.chat):
            one = decode(raw)
            if one.at < answered[0].at:
                break
            if one.sender.id == self._api.app and _spoken(text_of(one)) == wanted:
                return one.message_id
        return ""


def _post(text: str) -> Json:
    return {"zh_cn": {"content": [[{"tag": "md", "text": in_post(text)}]]}}


def _encoded(content: Json) -> str:
    return json.dumps(content, ensure_ascii=False)


def _spoken(text: str) -> str:
    """The letters and digits of a text: Feishu gives its marks back in another form."""
    return _SILENT.sub("", text)
