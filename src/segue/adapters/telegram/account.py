"""An account of the Telegram adapter, as the host writes it in segue.toml."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from segue.adapters.telegram.adapter import Telegram, TelegramByWebhook
from segue.adapters.telegram.api import PUBLIC
from segue.core.contracts import Files
from segue.core.secret import Secret
from segue.core.values import Value
from segue.errors import Invalid

_TOKEN = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{10,100}")


class TelegramAccount(Value, frozen=True):
    """The keys of a table [telegram.ACCOUNT]."""

    token: Secret
    """What @BotFather gave for the bot."""
    webhook: str = ""
    """The public address of this Segue, such as https://segue.example.org; without it updates are polled for."""
    api: str = PUBLIC
    """Where the Bot API is, for those who run a server of it themselves."""

    def __post_init__(self) -> None:
        if not _TOKEN.fullmatch(self.token.reveal()):
            raise Invalid("token", "it isn't a bot's token", "Get one from @BotFather: it looks like 123456:ABC-DEF.")
        for key, url in (("webhook", self.webhook), ("api", self.api)):
            if url and not _is_http(url):
                raise Invalid(key, f"{url!r} is not an http address", 'Write it whole, such as "https://example.org".')

    def adapter(self, account: str, files: Files) -> Telegram:
        """The adapter for this account: it polls, unless there is an address that Telegram can call."""
        api = self.api.rstrip("/")
        if not self.webhook:
            return Telegram(account, self.token, files, api)
        return TelegramByWebhook(account, self.token, files, api, webhook=self.webhook.rstrip("/"))


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and not parts.username
    except ValueError:
        return False
