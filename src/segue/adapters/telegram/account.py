"""An account of the Telegram adapter, as the host writes it in segue.toml."""

import re
from collections.abc import Mapping
from typing import Any

from segue.adapters.shared.decoding import decode
from segue.adapters.shared.outcomes import calling, check_http
from segue.adapters.shared.setup import keys_of, written
from segue.adapters.telegram.adapter import Telegram, TelegramByWebhook
from segue.adapters.telegram.api import PUBLIC, Api
from segue.adapters.telegram.updates import Update
from segue.core.contracts.adapters import Files
from segue.core.contracts.setup import Added, FoundOwner, SetupQuestion
from segue.core.values import LEFT, Secret, Value
from segue.errors import Invalid, SendNever

_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{10,100}")


class TelegramAccount(Value, frozen=True):
    """The keys of a table [telegram.ACCOUNT]."""

    token: Secret
    """The bot's token, from @BotFather."""
    webhook: str = ""
    """The public address of this Segue, such as https://segue.example.org; without it updates are polled for."""
    api: str = PUBLIC
    """The address of the Bot API, for those who run a server of it themselves."""
    rich: bool = True
    """Answers with tables, headings, lists or maths are rich messages; apps from before June 2026 don't show them."""

    def __post_init__(self) -> None:
        if self.token != LEFT and not _TOKEN.fullmatch(self.token.reveal()):
            raise Invalid("token", "it isn't a bot's token", "Get one from @BotFather: it looks like 123456:ABC-DEF.")
        for key, url in (("webhook", self.webhook), ("api", self.api)):
            if url:
                check_http(key, url, "https://example.org")

    @classmethod
    def questions(cls) -> tuple[SetupQuestion, ...]:
        return (
            SetupQuestion("token", "The bot's token, from @BotFather", secret=True),
            SetupQuestion("webhook", "The public https address of this Segue (empty: poll)", default=""),
            SetupQuestion("api", "The address of the Bot API (empty: Telegram's own)", default=""),
        )

    @classmethod
    async def added(cls, answers: Mapping[str, str]) -> Added:
        """Ask Telegram whose token it is."""
        keys = keys_of(cls, answers)
        async with calling(keys.calls) as api:
            me = await api.call("getMe")
        name, topics = me.get("username") or "bot", "has no topics in private chats; @BotFather turns them on"
        if me.get("has_topics_enabled"):
            people = "open them, too" if me.get("allows_users_to_create_topics") else "not: @BotFather lets them"
            topics = f"opens topics in private chats; people may {people}"
        said, link = f"The bot is @{name}, and {topics}.", f"https://t.me/{name}"
        return Added(name, said, *written(keys), link=link)

    @classmethod
    async def meet(cls, answers: Mapping[str, str], after: str) -> FoundOwner:
        """Poll until a person writes in private; what came before them is forgotten."""
        offset = int(after) + 1 if after else None
        async with calling(keys_of(cls, answers).calls) as api:
            await api.call("deleteWebhook")
            while True:
                updates, offset = await api.updates(offset)
                for met in filter(None, map(_met, updates)):
                    return met

    @classmethod
    async def acknowledge(cls, answers: Mapping[str, str], cursor: str) -> None:
        """Ask for what comes after."""
        async with calling(keys_of(cls, answers).calls) as api:
            await api.updates(int(cursor) + 1, wait=0)

    @property
    def calls(self) -> Api:
        return Api(self.token, self.api.rstrip("/"))

    async def greet(self, account: str, user: str) -> str:
        """Say hello; a bot may only write to who wrote to it."""
        del account
        if not (user.isascii() and user.isdecimal()):
            raise Invalid("owner", f'"{user}" is no user id', "It is a number; @userinfobot tells you yours.")
        async with calling(self.calls) as api:
            try:
                await api.call("sendMessage", chat_id=int(user), text="Hello. Write to me, or type /help.")
            except SendNever:
                return "Open the chat with your bot and press Start: a bot may not write first."
        return "Said hello to you on Telegram."

    def adapter(self, account: str, files: Files) -> Telegram:
        """The adapter for this account: it polls, unless there is an address that Telegram can call."""
        api = self.api.rstrip("/")
        if not self.webhook:
            return Telegram(account, self.token, files, api, rich=self.rich)
        return TelegramByWebhook(account, self.token, files, api, webhook=self.webhook.rstrip("/"), rich=self.rich)


def _met(raw: Any) -> FoundOwner | None:
    """Who wrote in private, if an update says so."""
    try:
        update = decode(raw, Update, "Telegram")
    except Invalid:
        return None
    message, who = update.message, update.message.author if update.message else None
    if message is None or who is None or message.chat.type != "private":
        return None
    known = f"@{who.username}, {who.id}" if who.username else str(who.id)
    return FoundOwner(str(who.id), str(message.chat.id), f"{who.name} ({known})", str(update.update_id))
