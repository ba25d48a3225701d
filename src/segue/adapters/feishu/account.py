"""An account of the Feishu adapter, as the host writes it in segue.toml."""

import asyncio
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any
from urllib.parse import urlencode

from segue.adapters.feishu.adapter import Feishu, FeishuByEvents
from segue.adapters.feishu.api import Api
from segue.adapters.feishu.outgoing import PACE, Pace
from segue.adapters.shared.outcomes import calling, check_http
from segue.adapters.shared.setup import greeted, keys_of, met, written
from segue.adapters.shared.web import Web
from segue.core.contracts.adapters import Files
from segue.core.contracts.setup import Added, FoundOwner, SetupQuestion
from segue.core.values import LEFT, Secret, Value
from segue.errors import Disconnected, Invalid, SendNever

_HELLO = '{"text": "Hello. Write to me here, or type /help."}'
_BY_HAND = "The App ID of an app that you made by hand, as docs/feishu.md says (cli_...)\n"
_BY_HAND += "(empty: scan a code with Feishu or Lark on your phone, and the app is made)"
_TOKEN = "The Verification Token, under Encryption Strategy\n(empty: a long connection, which needs no address)"  # noqa: S105 -- a question
_REGISTRATION = "/oauth/v1/app/registration"
_ASKS = {"archetype": "PersonalAgent", "auth_method": "client_secret", "request_user_info": "open_id"}
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_NAMED = {"from": "sdk", "tp": "sdk", "source": "segue", "name": "Segue"}
_EVERY = 5.0
"""Seconds between two looks, unless Feishu says otherwise."""


class Domain(StrEnum):
    """The house that an app belongs to: Feishu in China, Lark elsewhere."""

    FEISHU = "feishu"
    LARK = "lark"

    def at(self, service: str) -> str:
        return f"https://{service}.{'larksuite.com' if self is Domain.LARK else 'feishu.cn'}"


class FeishuAccount(Value, frozen=True):
    """The keys of a table [feishu.ACCOUNT]."""

    app_id: str
    app_secret: Secret
    verification_token: Secret = Secret("")
    """The token that Feishu shows when it calls; then Feishu calls, and no connection is opened."""
    encrypt_key: Secret = Secret("")
    """The key with which Feishu signs and encrypts its calls."""
    domain: Domain = Domain.FEISHU
    api: str = ""
    """The address of the Open API, for tests."""

    def __post_init__(self) -> None:
        if self.api:
            check_http("api", self.api, Domain.FEISHU.at("open"))
        if not self.app_id.startswith("cli_"):
            raise Invalid("app_id", f"{self.app_id!r} isn't an app's", "It begins with cli_; see Credentials.")
        token, key = self.verification_token, self.encrypt_key
        if LEFT not in (token, key) and bool(token.reveal()) is not bool(key.reveal()):
            fix = "Set both under Events & Callbacks, Encryption Strategy; or leave both out for a long connection."
            raise Invalid("encrypt_key", "it and verification_token go together", fix)

    @property
    def calls(self) -> Api:
        return Api(self.app_id, self.app_secret, (self.api or self.domain.at("open")).rstrip("/"))

    @classmethod
    def questions(cls) -> tuple[SetupQuestion, ...]:
        return (
            SetupQuestion("app_id", _BY_HAND, default=""),
            SetupQuestion("app_secret", "The App Secret, beneath it (empty, too)", secret=True, default=""),
            SetupQuestion("domain", 'Where the app lives: "feishu" (China) or "lark" (elsewhere)', default="feishu"),
            SetupQuestion("verification_token", _TOKEN, secret=True, default=""),
            SetupQuestion("encrypt_key", "The Encrypt Key, above it (empty, too)", secret=True, default=""),
            SetupQuestion("api", "The address of the Open API (empty: that of the domain)", default=""),
        )

    @classmethod
    async def scanned(cls, answers: Mapping[str, str], show: Callable[[str], None]) -> Mapping[str, str]:
        """Let Feishu make the app for whoever scans a code, unless there is one."""
        if answers.get("app_id", "").strip():
            return answers
        api = answers.get("api", "").strip().rstrip("/")
        return {**answers, **await register(show, {domain: api or domain.at("accounts") for domain in Domain})}

    @classmethod
    async def added(cls, answers: Mapping[str, str]) -> Added:
        """Ask Feishu which app it is and what it may do."""
        keys = keys_of(cls, answers)
        async with calling(keys.calls) as api:
            try:
                bot = await api.bot()
            except SendNever as error:
                raise Invalid("app_secret", str(error), "Add the feature Bot to the app, and publish it.") from error
            lacks = await api.lacks()
        name = str(bot.get("app_name") or "segue")
        said = f"The app is {name}. {lacks or 'It has every scope that it needs.'}"
        # Only who listens to a connection can wait for somebody to write.
        link = f"{keys.domain.at('applink')}/client/bot/open?appId={keys.app_id}"
        return Added(name, said, *written(keys), link="" if keys.encrypt_key.reveal() else link)

    @classmethod
    async def meet(cls, answers: Mapping[str, str], after: str) -> FoundOwner:
        return await met(keys_of(cls, answers).adapter, after)

    async def greet(self, account: str, user: str) -> str:
        del account
        hello = {"receive_id": user, "msg_type": "text", "content": _HELLO}
        path = "/im/v1/messages?receive_id_type=open_id"
        return await greeted("Feishu", self.calls, lambda api: api.call("POST", path, hello))

    def adapter(self, account: str, files: Files, pace: Pace = PACE) -> Feishu:
        """The adapter for this account: it opens a connection, unless Feishu calls."""
        if self.encrypt_key.reveal():
            return FeishuByEvents(account, self.calls, self.verification_token, self.encrypt_key, files, pace=pace)
        return Feishu(account, self.calls, files, pace=pace)


async def register(show: Callable[[str], None], accounts: Mapping[Domain, str]) -> dict[str, str]:
    """Show a code, and wait until somebody has scanned it and the app is made; people of Lark are asked there.

    It is the device flow of OAuth, which gives the id and the secret of the app.
    """
    domain = Domain.FEISHU
    begun = await _ask(accounts[domain], "begin", **_ASKS)
    link, code, every = (begun.get(key) for key in ("verification_uri_complete", "device_code", "interval"))
    if not link or not code:
        raise Disconnected("Feishu makes no app by a code now. Make one by hand: docs/feishu.md says how.")
    show(f"{link}{'&' if '?' in str(link) else '?'}{urlencode(_NAMED)}")
    wait = float(every) if isinstance(every, int | float) and every > 0 else _EVERY
    while True:
        await asyncio.sleep(wait)
        match await _ask(accounts[domain], "poll", device_code=str(code)):
            case {"client_id": str(app), "client_secret": str(secret)} if app and secret:
                return {"app_id": app, "app_secret": secret, "domain": domain}
            case {"user_info": {"tenant_brand": Domain.LARK}} if domain is Domain.FEISHU:
                domain = Domain.LARK
            case {"error": "authorization_pending"}:
                """Nobody has scanned it yet."""
            case {"error": "slow_down"}:
                wait *= 2
            case told:
                why = str(told.get("error_description") or told.get("error") or "it didn't say why")
                raise Invalid("app_id", f"Feishu made no app: {why}", "Run it again, or give an app's id and secret.")


async def _ask(base: str, action: str, **fields: str) -> dict[str, Any]:
    body = urlencode({"action": action, **fields}).encode()
    async with calling(Web("Feishu", base)) as web:
        told = web.told(await web.call("POST", _REGISTRATION, body, _FORM))
    return told if isinstance(told, dict) else {}
