"""Events and buttons, read into arrivals.

Law: a message is known by its id and by that of the event it came with. What bots write, this one included, is nothing
at all. A thread is named by its root, which is also what messages to it are sent in answer to.
"""

import re
import time
from collections.abc import Container, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from segue.adapters.feishu.api import Api
from segue.adapters.feishu.messages import PICTURE, Content, Json, Message, decode, read, text_of
from segue.adapters.shared.account import Account, foreign
from segue.adapters.shared.attachments import BEGINNING, Tries, whole
from segue.adapters.shared.decoding import inside, text_in
from segue.adapters.shared.downloads import Limits, fetching
from segue.core.contracts.adapters import Arrived, Files
from segue.core.lanes import Kind, Place
from segue.core.messages import Arrival, Citation, Citing, File, Parts, Pressed, Text
from segue.errors import Invalid, SendError

PRESS = "card.action.trigger"
"""The event of somebody who pressed something, and waits."""
_MOST = 50
"""Messages of those that were forwarded together which are passed on."""
Heard = tuple[Arrival, Mapping[str, File]]
"""What somebody did, and the files that are to be fetched for it, by their keys."""
_KINDS = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}
"""Pictures by how they begin: Feishu doesn't say what a picture is."""


class Incoming:
    """Reads what one app is told."""

    def __init__(self, account: Account, api: Api, files: Files, sent: Container[str]) -> None:
        self._account = account
        self._api = api
        self._files = files
        self._sent = sent
        self._tries = Tries()

    async def read(self, payload: Any) -> Arrived | None:
        """The message in what was delivered, if there is one; raises `Invalid` for what can't be understood."""
        # Half of a UTF-16 pair is in no id: it could be kept nowhere.
        msgspec.json.encode(payload)
        kind, id = (text_in(payload, "header", name) for name in ("event_type", "event_id"))
        if not kind:
            raise Invalid("event_type", "it isn't named", "Subscribe to events of version 2.0.")
        heard = await self._event(kind, inside(payload, "event"), id)
        if heard is None:
            return None
        arrival, files = replace(heard[0], seen_as=(f"event/{id}",) if id else ()), heard[1]
        return self._account.unfetched(arrival, lambda: self._fetch(arrival.message, files), payload)

    async def _event(self, kind: str, event: Json, id: str) -> Heard | None:
        match kind, event:
            case "im.message.receive_v1", _:
                return await self._said(decode({**inside(event, "message"), "sender": inside(event, "sender")}))
            case "im.message.updated_v1", {"message": {"message_id": str(message)}} if message:
                return await self._edited(message)
            case "im.message.recalled_v1", {"recall_type": "message_owner", "message_id": str(gone), **where}:
                # Feishu says that it was its author, and not who that is.
                there = decode({**where, "message_id": gone})
                return await self._arrival(there, "", f"{gone}/recalled", deletes=gone), {}
            case "im.chat.member.bot.added_v1", {"chat_id": str(chat), "operator_id": {"open_id": str(user)}} if user:
                there = Message("", chat, "group")
                return await self._arrival(there, user, f"brought.{id}", brings_agent=True), {}
            case "card.action.trigger", {
                "operator": {"open_id": str(user)},
                "action": {"value": {"choice": str(choice), "thread": str(thread)}},
                "context": {"open_message_id": str(card), "open_chat_id": str(chat)},
            } if user and choice and card:
                there = Message(card, chat, root_id=thread, thread_id=thread)
                return await self._arrival(there, user, f"button.{id}", pressed=Pressed(card, choice)), {}
        return None

    async def _said(self, message: Message) -> Heard | None:
        me, user, kind = await self._api.who(), message.author, text_in(message.sender, "sender_type")
        if kind not in {"", "user"} or user == me or message.deleted or message.kind == "system":
            return None
        if not (user and kind):
            raise Invalid("sender", "nobody wrote it", "A message has a sender.")
        cites, (text, files) = await self._content(message)
        quoted = (await self._api.messages(message.quotes))[:1] if message.quotes else []
        own = any(one.author == self._api.app for one in quoted)
        if not own:
            cites = (*cites, *await self._cited(quoted, Citing.REPLY))
        names = [name for _, id, name in message.mentioned if id == me]
        if names and names[0]:
            # Without the agent's name before it, a command stands at the beginning.
            text = re.sub(rf"\A\s*@{re.escape(names[0])}[\s,:]*", "", text)
        if not text and not files and not cites:
            return None
        parts = (*((Text(text),) if text else ()), *files.values())
        about = {"quotes": message.quotes, "cites": cites, "mentions_agent": own or bool(names)}
        return await self._arrival(message, user, message.message_id, parts, **about), files

    async def _edited(self, id: str) -> Heard | None:
        """That somebody edited what they wrote; Feishu only names it, also each time that the app changes its own."""
        found = [] if id in self._sent else await self._again(id)
        if not found or not (heard := await self._said(found[0])):
            return None
        words = tuple(part for part in heard[0].parts if isinstance(part, Text) or "" in heard[1])
        # It keeps its id, and mustn't be taken for the message as it was.
        return replace(heard[0], message=f"{id}/{found[0].update_time}", edits=id, parts=words), {}

    async def _arrival(self, there: Message, user: str, id: str, parts: Parts = (), **more: Any) -> Arrival:
        """Something that a person did where a message is."""
        if not there.chat_id:
            raise Invalid("chat_id", "it isn't named", "An event says where it happened.")
        name, thread = await self._api.name(user) if user else "", there.thread
        if there.msg_type and thread == there.message_id and not await self._api.has_topics(there.chat_id):
            # Fetched, the root of a thread names it; but it was said in the chat.
            thread = ""
        place = Place(self._account.address(there.chat_id, thread), Kind.DM, name)
        if await self._api.kind(there.chat_id, there.chat_type) is not Kind.DM:
            place = Place(place.address, Kind.GROUP, *await self._api.chat(there.chat_id))
        return Arrival(place, id, self._account.speaker(user, name), parts, there.at or time.time(), **more)

    async def _content(self, message: Message) -> tuple[tuple[Citation, ...], Content]:
        """What a message passes on, and what it says itself."""
        match message.kind:
            case "merge_forward":
                passed = [one for one in await self._again(message.message_id) if one.upper_message_id]
                cites = await self._cited(passed[:_MOST], Citing.FORWARD)
                if not cites:
                    raise Invalid("merge_forward", "nothing in it can be told", "Forward the messages one by one.")
                return cites, ("", {})
            case "interactive":
                return (Citation(text_of(message), kind=Citing.FORWARD),), ("", {})
            case _:
                names = {key: name or await self._api.name(id) for key, id, name in message.mentioned if id}
                try:
                    return (), read(message, {**names, "@_all": "all"})
                except Invalid:
                    # Under the key of no file: nothing is fetched for it.
                    return (), ("", {"": foreign(message.kind or "message_type")})

    async def _again(self, id: str) -> list[Message]:
        """A message that an event only names; raises `Invalid` once Feishu has failed too often to tell it."""
        try:
            return await self._api.fetch(id)
        except SendError as error:
            if not self._tries.lasts(id, error):
                raise
            raise Invalid("message_id", "Feishu can't tell this message", "Send it again.") from error

    async def _cited(self, found: list[Message], why: Citing) -> tuple[Citation, ...]:
        """The words of messages, and who said them."""
        cites = []
        for one in found:
            user = one.author if text_in(one.sender, "sender_type") == "user" else ""
            name = await self._api.name(user) if user else ""
            cites.append(Citation(text_of(one)[:BEGINNING], user, name, why))
        return tuple(cite for cite in cites if cite.text)

    async def _fetch(self, message: str, files: Mapping[str, File]) -> list[File | str]:
        return [await self._tries.file(one.name, key, self._fetched(message, key, one)) for key, one in files.items()]

    async def _fetched(self, message: str, key: str, file: File) -> File:
        kind = "image" if file is PICTURE else "file"
        url = f"{self._api.base}/open-apis/im/v1/messages/{message}/resources/{key}?type={kind}"
        async with fetching(url, Limits(trusted=self._api.base, opens=(await self._api.bearer(),))) as chunks:
            if file is not PICTURE:
                return await self._files.keep(file.name, file.media, chunks)
            picture = b"".join([chunk async for chunk in chunks])
        suffix = next((name for start, name in _KINDS.items() if picture.startswith(start)), "png")
        return await self._files.keep(f"picture.{suffix}", f"image/{suffix}", whole(picture))
