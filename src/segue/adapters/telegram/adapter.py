"""The Telegram adapter: one object per account, which polls for updates or is called with them."""

import asyncio
import hashlib
import hmac
import logging
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import Attachments
from segue.adapters.shared.background import beside
from segue.adapters.shared.decoding import decode
from segue.adapters.shared.downloads import Limits
from segue.adapters.shared.lookups import Lookups, Recent
from segue.adapters.shared.outcomes import connecting
from segue.adapters.shared.threads import Openings
from segue.adapters.shared.webhooks import door, posted_json, prove
from segue.adapters.telegram.api import EPHEMERAL, POLL, PUBLIC, UPDATES, Api, Pace
from segue.adapters.telegram.incoming import read
from segue.adapters.telegram.outgoing import Outgoing, fits, ids_after
from segue.adapters.telegram.updates import Attachment, Membership, Message, Peer, Update
from segue.core.commands import ShownTo, Spec
from segue.core.contracts.adapters import Accept, Connection, Files, Intake, Unfetched
from segue.core.contracts.database import Clock
from segue.core.lanes import Address, Kind
from segue.core.messages import Arrival, File, Pressed, Sending
from segue.core.values import Secret
from segue.errors import Disconnected, SendError, SendNever

log = logging.getLogger(__name__)

HEADER = "X-Telegram-Bot-Api-Secret-Token"
_RANK = "the bot's rank in {}"
_LOOK = 60.0
"""Seconds between two looks at whether Telegram still calls."""


class Telegram:
    """Speaks to Telegram as one bot, and polls for what people say to it."""

    platform = "telegram"
    sending = Sending.EDIT
    connection = Connection.ONE
    buttons: Literal[True] = True
    largest_file = 50 * 1000 * 1000
    """Bytes of a file that a bot may send."""

    def __init__(
        self,
        account: str,
        token: Secret,
        files: Files,
        api: str = PUBLIC,
        *,
        rich: bool = True,
        pace: Pace = Pace(),  # noqa: B008 -- frozen
        clock: Clock = time.time,
        ticks: Clock = time.monotonic,
    ) -> None:
        self.account = account
        self._own = Account(self.platform, account)
        self._api = Api(token, api, pace, ticks)
        self._clock = clock
        self._attachments = Attachments(files, Limits(trusted=api))
        self._me: Peer | None = None
        self._ranks = Lookups("Telegram", ticks)
        self._openings = Openings()
        self._albums: deque[str] = deque(maxlen=100)
        """Those of which a picture named the agent; the pictures of one come right after each other."""
        self._said: Recent[tuple[str, str], int] = Recent()
        """What was taken in last, as a hash, by chat and message."""
        outgoing = Outgoing(files, self._api, rich=rich)
        self.send, self.edit, self.is_placeholder = outgoing.send, outgoing.edit, outgoing.is_placeholder
        self.fits, self.ids_after = fits, ids_after

    async def close(self) -> None:
        self._openings.close()
        await self._api.close()

    async def who(self) -> Peer:
        if self._me is None:
            self._me = decode(await self._api.call("getMe"), Peer, "Telegram")
        return self._me

    async def start_link(self, code: str) -> str:
        return f"https://t.me/{(await self.who()).username}?start={code}"

    async def run(self, intake: Intake) -> None:
        with connecting():
            await self.who()
            await self._begin()
            async with beside(f"the menu of {self._own}", lambda: self._fill_menu(intake.commands)):
                await self._listen(intake)

    async def _begin(self) -> None:
        await self._api.call("deleteWebhook")

    async def _listen(self, intake: Intake) -> None:
        """Poll; the offset, which makes Telegram forget, follows what was accepted."""
        offset: int | None = None
        # The first answer comes at once, so that the account is known to be well before anybody writes.
        wait = 0
        while True:
            updates, offset = await self._api.updates(offset, wait)
            intake.connected()
            wait = POLL
            for raw in updates:
                await self.take(raw, intake.accept)

    async def _fill_menu(self, commands: Sequence[Spec]) -> None:
        # In a group, neither an ephemeral command nor its answer is seen by anybody else.
        menu = [
            {"command": spec.name, "description": spec.does[:256], "is_ephemeral": spec.shown_to is ShownTo.ASKER}
            for spec in commands
        ]
        await self._api.call("setMyCommands", commands=menu)

    async def take(self, raw: Any, accept: Accept) -> None:
        arrived = await self._own.or_letter(self._read(raw, await self.who()), raw)
        if arrived is not None:
            await accept(arrived)
        said = arrived.arrival if isinstance(arrived, Unfetched) else arrived
        if isinstance(said, Arrival) and _content(said):
            self._said[_message(said)] = _content(said)
        if isinstance(arrived, Arrival) and arrived.pressed:
            await self._let_go(arrived, arrived.pressed)

    async def _let_go(self, arrived: Arrival, pressed: Pressed) -> None:
        """Acknowledge a button once its press is durable; in a private chat those of its message are used up."""
        try:
            await self._api.call("answerCallbackQuery", callback_query_id=arrived.message.removeprefix("button."))
            if arrived.place.kind is Kind.DM:
                await self._api.change(arrived.place.address, pressed.message, "edit", "ReplyMarkup")
        except SendError as error:
            log.info("a button stays as it is: %s", error)

    async def _read(self, raw: Any, me: Peer) -> Arrival | Unfetched | None:
        """The message in an update, with the other id of a group that became a supergroup."""
        update = decode(raw, Update, "Telegram")
        message = update.message or update.edited_message
        if message and message.became:
            old, new = message.became
            self._api.moved[old] = new
        if update.my_chat_member:
            self._heed(update.my_chat_member)
        if message and not me.can_read_all_group_messages:
            me = replace(me, can_read_all_group_messages=await self._sees_all(message, me))
        arrival = read(update, raw, self._own, me, self._clock())
        # An edit may be told though nothing was edited, when somebody reacts to a message for instance.
        if arrival is None or (arrival.edits and self._said.get(_message(arrival)) == _content(arrival)):
            return None
        if arrival.album and arrival.mentions_agent:
            self._albums.append(arrival.album)
        # An album is a message for each picture, of which only one has the words.
        meant = arrival.mentions_agent or arrival.album in self._albums
        whole = replace(arrival, chat_aliases=self._api.aliases(arrival.place.address.chat), mentions_agent=meant)
        return self._own.unfetched(whole, lambda: self._fetch(message.attachments if message else ()), raw)

    async def _sees_all(self, message: Message, me: Peer) -> bool:
        """Whether the bot is shown all that is said where a command was given: an admin of a group is."""

        async def is_admin() -> bool:
            told = await self._api.call("getChatMember", chat_id=message.chat.id, user_id=me.id)
            return told.get("status") in ("creator", "administrator")

        if message.chat.type == "private" or not message.words.startswith("/"):
            return False
        return await self._ranks.get(_RANK.format(message.chat.id), is_admin, otherwise=False)

    def _heed(self, change: Membership) -> None:
        """The bot may do more or less in a chat than before, and may be in it or out of it."""
        chat, did = change.chat, "was brought into" if change.brings else "was removed from"
        self._ranks.forget(_RANK.format(chat.id))
        if change.brings is not None and chat.type != "private":
            log.warning("%s %s the %s %r (%d) by %d", self._own, did, chat.type, chat.title, chat.id, change.sender.id)

    async def _fetch(self, attachments: Sequence[Attachment]) -> list[File | str]:
        find = self._api.file
        return [await self._attachments.file(at.named, at.file_id, partial(find, at.file_id)) for at in attachments]

    def whispers_to(self, message: str) -> bool:
        """Whether an answer to a message can be seen by its person alone: if nobody else saw that, it can."""
        return message.startswith(f"{EPHEMERAL}.")

    async def delete(self, address: Address, message: str) -> None:
        """Delete a message of ours; Telegram lets us within two days."""
        await self._api.change(address, message, "delete")

    async def typing(self, address: Address) -> None:
        """Show that somebody writes, for five seconds."""
        await self._api.call_in(address, "sendChatAction", action="typing", message_thread_id=address.thread or None)

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        """Open a topic; only this object remembers which key it was for, since Telegram lists no topics."""
        return await self._openings.open(key, lambda: self._open(parent, title))

    async def _open(self, parent: Address, title: str) -> Address:
        name = title.strip()[:128] or "Session"
        try:
            topic = await self._api.call_in(parent, "createForumTopic", name=name)
        except SendNever as error:
            where = "this group: its settings turn them on, and the bot must be an admin who may manage them"
            if not parent.chat.startswith("-"):
                where = "private chats with this bot: @BotFather turns them on"
            raise SendNever(f"There are no topics in {where}. ({error})") from error
        return self._own.address(parent.chat, str(topic["message_thread_id"]))


def _message(arrival: Arrival) -> tuple[str, str]:
    """The message that something says or changes."""
    return arrival.place.address.chat, arrival.edits or arrival.message


def _content(arrival: Arrival) -> int:
    """What a message says, as a hash; 0 if it says nothing."""
    return hash((arrival.parts, arrival.cites)) if arrival.parts or arrival.cites else 0


class TelegramByWebhook(Telegram):
    """Speaks to Telegram as one bot, and is called with what people say to it."""

    def __init__(self, account: str, token: Secret, files: Files, *api: str, webhook: str, **more: Any) -> None:
        super().__init__(account, token, files, *api, **more)
        self._url = f"{webhook}/in/telegram/{account}"
        self._secret = secret_of(token, account)

    def webhook(self, accept: Accept) -> ASGIApp:
        async def answer(request: Request) -> Response:
            prove(request, HEADER, self._secret)
            with connecting():
                await self.take(await posted_json(request), accept)
            return Response()

        return door(answer)

    async def _begin(self) -> None:
        """Tell Telegram where to call; one call at a time keeps the order."""
        told: dict[str, Any] = {"secret_token": self._secret, "allowed_updates": UPDATES, "max_connections": 1}
        try:
            await self._api.call("setWebhook", url=self._url, **told)
        except SendNever as error:
            raise Disconnected(f"Telegram won't call {self._url}. {error}") from error

    async def _listen(self, intake: Intake) -> None:
        """See to it that Telegram calls."""
        since = self._clock()
        while True:
            intake.connected()
            await asyncio.sleep(_LOOK)
            known = await self._api.call("getWebhookInfo")
            if known.get("url") != self._url:
                raise Disconnected("Somebody else told Telegram to call elsewhere.")
            if known.get("pending_update_count") and known.get("last_error_date", 0) > since:
                raise Disconnected(f"Telegram can't call {self._url}: {known.get('last_error_message')}.")


def secret_of(token: Secret, account: str) -> str:
    """The secret that Telegram shows with each update: made of the token, so that no second one has to be kept."""
    return hmac.new(token.reveal().encode(), f"webhook/{account}".encode(), hashlib.sha256).hexdigest()
