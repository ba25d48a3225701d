"""Events and buttons, read into arrivals.

Law: a message is known by its id and by that of the event it came with. What bots write, this one included, is nothing
at all. A thread is named by its root, which is also what messages to it are sent in answer to.
"""

import re
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from segue.adapters.feishu import events
from segue.adapters.feishu.content import Attachment, Content, read, text_of
from segue.adapters.feishu.directory import Directory
from segue.adapters.feishu.events import Fetched, Mention, Message, decode, moment
from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import BEGINNING
from segue.core.lanes import Kind, Place
from segue.core.messages import Arrival, Citation, Citing, Pressed, Speaker, Text
from segue.core.values import Moment, Value
from segue.errors import Invalid, SendNever

_EVERYBODY = "@_all"
_PRESSED = "card.action.trigger"
_MOST = 50
"""Messages of those that were forwarded together which are passed on."""


def is_press(payload: object) -> bool:
    """Whether somebody pressed something, and waits."""
    header = payload.get("header") if isinstance(payload, dict) else None
    return isinstance(header, dict) and header.get("event_type") == _PRESSED


class Heard(Value, frozen=True):
    """A message to the agent: the arrival, and the files that are to be fetched for it."""

    arrival: Arrival
    attachments: tuple[Attachment, ...] = ()


class Incoming:
    """Reads what one app is told."""

    def __init__(self, account: Account, directory: Directory, is_own: Callable[[str], bool]) -> None:
        self._account = account
        self._directory = directory
        self._is_own = is_own

    async def read(self, payload: Any, me: str, app: str, at: Moment) -> Heard | None:
        """The message in what was delivered, if there is one; raises `Invalid` for what can't be understood."""
        callback: events.Callback = decode(payload, events.Callback)
        header, event = callback.header, callback.event
        seen = (f"event/{header.event_id}",) if header.event_id else ()
        match header.event_type:
            case "im.message.receive_v1":
                return await self._said(decode(event, events.Received), me, app, seen)
            case "im.message.updated_v1":
                return await self._edited(decode(event, events.Updated).message.message_id, me, app, seen)
            case "im.message.recalled_v1":
                return await self._recalled(decode(event, events.Recalled), at, seen)
            case "im.chat.member.bot.added_v1":
                return await self._brought(decode(event, events.BotAdded), header.event_id, at, seen)
            case kind if kind == _PRESSED:
                return await self._pressed(decode(event, events.CardPress), header.event_id, at, seen)
            case "":
                raise Invalid("event_type", "it isn't named", "Subscribe to events of version 2.0.")
            case _:
                return None

    async def _edited(self, id: str, me: str, app: str, seen: tuple[str, ...]) -> Heard | None:
        """That somebody edited what they wrote; Feishu only names it, also each time that the app changes its own."""
        if not id or self._is_own(id):
            return None
        try:
            found = [one for one in (await self._directory.items(id))[:1] if not one.get("deleted")]
        except SendNever:
            return None
        for one in found:
            received: events.Received = decode(await self._directory.received(one), events.Received)
            if heard := await self._said(received, me, app, seen):
                # It keeps its id, and mustn't be taken for the message as it was.
                changed = f"{id}/{received.message.update_time}"
                words = tuple(part for part in heard.arrival.parts if isinstance(part, Text))
                return Heard(replace(heard.arrival, message=changed, edits=id, parts=words))
        return None

    async def _said(self, received: events.Received, me: str, app: str, seen: tuple[str, ...]) -> Heard | None:
        message, user = received.message, received.sender.sender_id.open_id
        if received.sender.sender_type != "user" or user == me or message.message_type == "system":
            return None
        if not user:
            raise Invalid("sender", "nobody wrote it", "A message has a sender.")
        cites, said = await self._content(message)
        quoted = (await self._directory.messages(message.quotes))[:1] if message.quotes else []
        own = any(one.sender.id == app for one in quoted)
        if quoted and not own:
            cites = (*cites, *await self._cited(quoted, Citing.REPLY))
        text = _without_address(said.text, message.mentions, me)
        if not text and not said.files and not cites:
            return None
        arrival = Arrival(
            place=await self._place(message, user),
            message=message.message_id,
            speaker=await self._speaker(user),
            parts=(*((Text(text),) if text else ()), *(file.named for file in said.files)),
            at=moment(message.create_time),
            seen_as=seen,
            quotes=message.quotes,
            cites=cites,
            mentions_agent=own or any(mention.who == me for mention in message.mentions),
        )
        return Heard(arrival, said.files)

    async def _content(self, message: Message) -> tuple[tuple[Citation, ...], Content]:
        """What a message passes on, and what it says itself."""
        match message.message_type:
            case "merge_forward":
                inside = [one for one in await self._directory.messages(message.message_id) if one.upper_message_id]
                return await self._cited(inside[:_MOST], Citing.FORWARD), Content()
            case "interactive":
                return (Citation(text_of("interactive", message.content), kind=Citing.FORWARD),), Content()
            case kind:
                return (), read(kind, message.content, await self._names(message.mentions))

    async def _cited(self, found: list[Fetched], why: Citing) -> tuple[Citation, ...]:
        """The words of messages, and who said them."""
        cites = []
        for one in found:
            user = one.sender.id if one.sender.sender_type == "user" else ""
            name = await self._directory.name(user) if user else ""
            cites.append(Citation(text_of(one.msg_type, one.body.content)[:BEGINNING], user, name, why))
        return tuple(cite for cite in cites if cite.text)

    async def _recalled(self, recalled: events.Recalled, at: Moment, seen: tuple[str, ...]) -> Heard | None:
        """That somebody took back what they wrote; Feishu says that it was its author, and not who that is."""
        if recalled.recall_type != "message_owner":
            return None
        place = Place(self._account.address(recalled.chat_id), await self._directory.kind(recalled.chat_id))
        id, gone = f"{recalled.message_id}/recalled", recalled.message_id
        return Heard(Arrival(place, id, self._account.speaker(""), (), at, seen_as=seen, deletes=gone))

    async def _brought(self, added: events.BotAdded, id: str, at: Moment, seen: tuple[str, ...]) -> Heard | None:
        if not (user := added.operator_id.open_id):
            return None
        place = Place(self._account.address(added.chat_id), Kind.GROUP, *await self._directory.chat(added.chat_id))
        speaker = await self._speaker(user)
        return Heard(Arrival(place, f"brought.{id}", speaker, (), at, seen_as=seen, brings_agent=True))

    async def _pressed(self, press: events.CardPress, id: str, at: Moment, seen: tuple[str, ...]) -> Heard | None:
        where, choice, thread = press.context, press.action.value.get("choice"), press.action.value.get("thread")
        if not (isinstance(choice, str) and choice and where.open_message_id and press.operator.open_id):
            return None
        root = str(thread or "")
        said = Message(where.open_message_id, where.open_chat_id, root_id=root, thread_id=root)
        place, speaker = await self._place(said, press.operator.open_id), await self._speaker(press.operator.open_id)
        pressed = Pressed(where.open_message_id, choice)
        return Heard(Arrival(place, f"button.{id}", speaker, (), at, seen_as=seen, pressed=pressed))

    async def _place(self, message: Message, user: str) -> Place:
        if not message.chat_id:
            raise Invalid("chat_id", "it isn't named", "An event says where it happened.")
        address = self._account.address(message.chat_id, message.thread)
        if await self._directory.kind(message.chat_id, message.chat_type) is Kind.DM:
            return Place(address, Kind.DM, await self._directory.name(user))
        return Place(address, Kind.GROUP, *await self._directory.chat(message.chat_id))

    async def _speaker(self, user: str) -> Speaker:
        return self._account.speaker(user, await self._directory.name(user))

    async def _names(self, mentions: tuple[Mention, ...]) -> dict[str, str]:
        return {one.key: one.name or await self._directory.name(one.who) for one in mentions if one.who} | {
            _EVERYBODY: "all"
        }


def _without_address(text: str, mentions: tuple[Mention, ...], me: str) -> str:
    """The words without the agent's name before them, so that a command stands at their beginning."""
    for mention in mentions:
        if mention.who == me and mention.name:
            return re.sub(rf"\A\s*@{re.escape(mention.name)}[\s,:]*", "", text)
    return text
