"""An account of the Discord adapter, as the host writes it in segue.toml."""

import re
from collections.abc import Mapping

import discord

from segue.adapters.discord.adapter import Discord
from segue.adapters.discord.api import MESSAGES, PORTAL, PUBLIC, Api
from segue.adapters.shared.outcomes import calling, check_http
from segue.adapters.shared.setup import keys_of, met, written
from segue.core.contracts.adapters import Files
from segue.core.contracts.setup import Added, FoundOwner, SetupQuestion
from segue.core.values import LEFT, Secret, Value
from segue.errors import Invalid, SendNever

_TOKEN = re.compile(r"[A-Za-z0-9_.-]{20,200}")
_MAY = discord.Permissions(
    view_channel=True,
    send_messages=True,
    send_messages_in_threads=True,
    create_public_threads=True,
    attach_files=True,
    read_message_history=True,
)


class DiscordAccount(Value, frozen=True):
    """The keys of a table [discord.ACCOUNT]."""

    token: Secret
    """The bot's token, from its page at https://discord.com/developers/applications, under Bot."""
    api: str = PUBLIC
    """The address of the API, for those who have a proxy before it."""

    def __post_init__(self) -> None:
        if self.token != LEFT and not _TOKEN.fullmatch(self.token.reveal()):
            fix = f"Get one at {PORTAL}: your application, Bot, Reset Token."
            raise Invalid("token", "it isn't a bot's token", fix)
        check_http("api", self.api, PUBLIC)

    @classmethod
    def questions(cls) -> tuple[SetupQuestion, ...]:
        """The questions, in the order in which they are asked."""
        where = f"The bot's token. At {PORTAL}: New Application, then Bot: turn on Message Content Intent, Reset Token"
        return (
            SetupQuestion("token", where, secret=True),
            SetupQuestion("api", "The address of the API (empty: Discord's own)", default=""),
        )

    @classmethod
    async def added(cls, answers: Mapping[str, str]) -> Added:
        """Ask Discord whose token it is, and whether the bot may read messages."""
        keys = keys_of(cls, answers)
        async with calling(Api(keys.token, keys.api)) as api:
            client, name = await api.client(), (await api.me()).name
        id, flags = str(client.application_id), client.application_flags
        if not (flags.gateway_message_content or flags.gateway_message_content_limited):
            fix = f"Turn on Message Content Intent at {PORTAL}/{id}/bot, and save."
            raise Invalid("token", f"the bot {name} may not read messages", fix)
        link = discord.utils.oauth_url(id, permissions=_MAY, scopes=("bot", "applications.commands"))
        said = f"The bot is {name}, and may read messages. Add it to a server by the link below; there, click its name "
        said += "in the list of members, and write to it."
        return Added(name, said, *written(keys), link=link)

    @classmethod
    async def meet(cls, answers: Mapping[str, str], after: str) -> FoundOwner:
        """Wait until a person writes in private, from now on."""
        return await met(keys_of(cls, answers).adapter, after)

    async def greet(self, account: str, user: str) -> str:
        """Say hello in private; a bot may write to those who share a server with it."""
        del account
        if not (user.isascii() and user.isdecimal()):
            fix = "It is a number; with Developer Mode on, right-click your name and copy it."
            raise Invalid("owner", f'"{user}" is no user id', fix)
        async with calling(Api(self.token, self.api)) as api:
            try:
                chat = await api.call("POST", "/users/@me/channels", {"recipient_id": user})
                hello = {"content": "Hello. Write to me, or type /help."}
                await api.call("POST", MESSAGES, hello, channel_id=str(chat["id"]))
            except SendNever:
                return "Add the bot to a server that you are in, and write to it: it may not write to strangers."
        return "Said hello to you on Discord."

    def adapter(self, account: str, files: Files) -> Discord:
        """The adapter for this account."""
        return Discord(account, self.token, files, self.api)
