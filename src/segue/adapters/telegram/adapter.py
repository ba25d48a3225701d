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

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from segue.adapters.shared.account import Account
from segue.adapters.shared.attachments import Attachments
from segue.adapters.shared.background import beside
from segue.adapters.shared.downloads import Limits, NotFetched
from segue.adapters.shared.outcomes import connecting
from segue.adapters.shared.threads import Openings
from segue.adapters.shared.webhooks import door, posted_json, prove
from segue.adapters.telegram.api import POLL, PUBLIC, UPDATES, Api
from segue.adapters.telegram.chats import EPHEMERAL, Chats, Pace, number, thread
from segue.adapters.telegram.incoming import Heard, read
from segue.adapters.telegram.outgoing import Outgoing, fits, ids_after
from segue.adapters.telegram.updates import Attachment, Peer, Update, decode
from segue.core.commands import ShownTo, Spec
from segue.core.contracts.adapters import Accept, Connection, Files, Intake, Letter
from segue.core.contracts.database import Clock
from segue.core.lanes import Address
from segue.core.messages import Arrival, File, Sending
from segue.core.values import Secret
from segue.errors import Disconnected, SendError, SendNever

log = logging.getLogger(__name__)

HEADER = "X-Telegram-Bot-Api-Secret-Token"
_LONGEST_TITLE = 128
_GROUPS = {"group", "supergroup"}
_ALBUMS = 100
"""Albums that are remembered: the pictures of one come right after each other."""
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
        self._api = Api(token, api)
        self._clock = clock
        self._chats = Chats(self._api, pace, ticks)
        self._attachments = Attachments(files, Limits(trusted=api))
        self._me: Peer | None = None
        self._openings = Openings()
        self._albums: deque[str] = deque(maxlen=_ALBUMS)
        """Those of which a picture named the agent."""
        outgoing = Outgoing(files, self._chats, rich=rich)
        self.send, self.edit, self.is_placeholder = outgoing.send, outgoing.edit, outgoing.is_placeholder
        self.fits, self.ids_after = fits, ids_after

    async def close(self) -> None:
        """Let go of the connections."""
        self._openings.close()
        await self._api.close()

    async def who(self) -> Peer:
        """The bot itself."""
        if self._me is None:
            self._me = msgspec.convert(await self._api.call("getMe"), Peer)
        return self._me

    async def start_link(self, code: str) -> str:
        """A link that opens a chat with the bot and sends it the code."""
        return f"https://t.me/{(await self.who()).username}?start={code}"

    async def run(self, intake: Intake) -> None:
        """Poll until cancelled; the offset, which makes Telegram forget, follows what was accepted."""
        with connecting():
            await self.who()
            await self._api.call("deleteWebhook")
            async with beside(f"the menu of {self._own}", lambda: self._fill_menu(intake.commands)):
                await self._poll(intake)

    async def _poll(self, intake: Intake) -> None:
        offset: int | None = None
        # The first answer comes at once, so that the account is known to be well before anybody writes.
        wait = 0
        while True:
            updates = await self._api.updates(offset, wait)
            intake.connected()
            wait = POLL
            # After an empty answer nothing is left to forget; the ids may begin anew after a quiet week.
            offset = None
            for raw in updates:
                await self.take(raw, intake.accept)
                if isinstance(raw, dict) and isinstance(number := raw.get("update_id"), int):
                    offset = number + 1

    async def _fill_menu(self, commands: Sequence[Spec]) -> None:
        menu: list[dict[str, Any]] = [{"command": spec.name, "description": spec.does[:256]} for spec in commands]
        for spec, entry in zip(commands, menu, strict=True):
            if spec.shown_to is ShownTo.ASKER:
                # In a group, neither the command nor its answer is seen by anybody else.
                entry["is_ephemeral"] = True
        await self._api.call("setMyCommands", commands=menu)

    async def take(self, raw: Any, accept: Accept) -> None:
        """Take one update in."""
        heard = await self._own.or_letter(self._read(raw, await self.who()), raw)
        if isinstance(heard, Letter):
            await accept(heard)
        elif heard is not None:
            await accept(self._own.unfetched(heard.arrival, lambda: self._fetch(heard.attachments), raw))
            if heard.callback:
                await self._let_go(heard.callback, heard.arrival)

    async def _let_go(self, button: str, arrived: Arrival) -> None:
        """Acknowledge a button once its press is durable; in a private chat those of its message are used up."""
        chat = number(arrived.place.address.chat)
        try:
            await self._api.call("answerCallbackQuery", callback_query_id=button)
            if arrived.pressed and chat > 0:
                message = number(arrived.pressed.message)
                await self._api.call("editMessageReplyMarkup", chat_id=chat, message_id=message)
        except SendError as error:
            log.info("a button stays as it is: %s", error)

    async def _read(self, raw: Any, me: Peer) -> Heard | None:
        """The message in an update, with the other id of a group that became a supergroup."""
        update = decode(raw)
        self._remember(update)
        heard = read(update, raw, self._own, await self._shown(update, me), self._clock())
        if heard is None:
            return None
        arrival, album = heard.arrival, update.message.media_group_id if update.message else ""
        if album and arrival.mentions_agent:
            self._albums.append(album)
        # An album is a message for each picture, of which only one has the words.
        meant = arrival.mentions_agent or album in self._albums
        aliases = self._chats.aliases(arrival.place.address.chat)
        return replace(heard, arrival=replace(arrival, chat_aliases=aliases, mentions_agent=meant, album=album))

    async def _shown(self, update: Update, me: Peer) -> Peer:
        """The bot as a command finds it: an admin of a group is shown everything there, as some are everywhere."""
        message = update.message or update.edited_message
        if me.can_read_all_group_messages or message is None or message.chat.type not in _GROUPS:
            return me
        sees_all = message.words.startswith("/") and await self._chats.is_admin(message.chat.id, me.id)
        return replace(me, can_read_all_group_messages=sees_all)

    def _remember(self, update: Update) -> None:
        if update.message is not None and update.message.became:
            self._chats.became(*update.message.became)
        change = update.my_chat_member
        if change is not None:
            self._chats.ranked(change.chat.id)
        if change is not None and change.chat.type != "private" and change.became:
            chat, by = change.chat, change.sender.id
            log.warning("%s %s the %s %r (%d) by %d", self._own, change.became, chat.type, chat.title, chat.id, by)

    async def _fetch(self, attachments: Sequence[Attachment]) -> list[File | str]:
        return [await self._attachments.file(at.named, at.file_id, partial(self._find, at)) for at in attachments]

    async def _find(self, attachment: Attachment) -> str:
        try:
            return await self._api.file(attachment.file_id)
        except SendNever as error:
            raise NotFetched("Telegram doesn't give it.") from error

    def whispers_to(self, message: str) -> bool:
        """Whether an answer to a message can be seen by its person alone: if nobody else saw that, it can."""
        return message.startswith(f"{EPHEMERAL}.")

    async def delete(self, address: Address, message: str) -> None:
        """Delete a message of ours; Telegram lets us within two days."""
        await self._chats.change(address, message, "delete")

    async def typing(self, address: Address) -> None:
        """Show that somebody writes, for five seconds."""
        await self._chats.call(address, "sendChatAction", action="typing", message_thread_id=thread(address))

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        """Open a topic; only this object remembers which key it was for, since Telegram lists no topics."""
        return await self._openings.open(key, lambda: self._open(parent, title))

    async def _open(self, parent: Address, title: str) -> Address:
        name = title.strip()[:_LONGEST_TITLE] or "Session"
        try:
            topic = await self._chats.call(parent, "createForumTopic", name=name)
        except SendNever as error:
            where = "this group: its settings turn them on, and the bot must be an admin who may manage them"
            if not parent.chat.startswith("-"):
                where = "private chats with this bot: @BotFather turns them on"
            raise SendNever(f"There are no topics in {where}. ({error})") from error
        return self._own.address(parent.chat, str(topic["message_thread_id"]))


class TelegramByWebhook(Telegram):
    """Speaks to Telegram as one bot, and is called with what people say to it."""

    def __init__(
        self, account: str, token: Secret, files: Files, api: str = PUBLIC, *, webhook: str, **more: Any
    ) -> None:
        super().__init__(account, token, files, api, **more)
        self._url = f"{webhook}/in/telegram/{account}"
        self._secret = secret_of(token, account)

    def webhook(self, accept: Accept) -> ASGIApp:
        """An ASGI application that answers 2xx only after `accept` returned."""

        async def answer(request: Request) -> Response:
            prove(request, HEADER, self._secret)
            with connecting():
                await self.take(await posted_json(request), accept)
            return Response()

        return door(answer)

    async def run(self, intake: Intake) -> None:
        """Tell Telegram where to call, and see to it that it does; one call at a time keeps the order."""
        with connecting():
            await self.who()
            try:
                await self._api.call(
                    "setWebhook",
                    url=self._url,
                    secret_token=self._secret,
                    allowed_updates=UPDATES,
                    max_connections=1,
                )
            except SendNever as error:
                raise Disconnected(f"Telegram won't call {self._url}. {error}") from error
            async with beside(f"the menu of {self._own}", lambda: self._fill_menu(intake.commands)):
                await self._look_after(intake)

    async def _look_after(self, intake: Intake) -> None:
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
