"""An account of the Feishu adapter, as the host writes it in segue.toml."""

import json
from collections.abc import Callable, Mapping
from typing import Self

from segue.adapters.feishu.adapter import Feishu
from segue.adapters.feishu.api import FEISHU, Api
from segue.adapters.feishu.outgoing import Pace
from segue.adapters.feishu.registration import Domain, register
from segue.adapters.feishu.webhook import FeishuByEvents
from segue.adapters.shared.outcomes import calling, check_http
from segue.adapters.shared.setup import met
from segue.core.contracts.adapters import Files
from segue.core.contracts.setup import Added, FoundOwner, SetupQuestion
from segue.core.values import LEFT, Secret, Value
from segue.errors import Invalid, SendNever

_HELLO = {"text": "Hello. Write to me here, or type /help."}
_SECRETS = ("app_secret", "verification_token", "encrypt_key")
_BY_HAND = "The App ID of an app that you made by hand, as docs/feishu.md says (cli_...)\n"
_BY_HAND += "(empty: scan a code with Feishu or Lark on your phone, and the app is made)"
_TOKEN = "The Verification Token, under Encryption Strategy\n(empty: a long connection, which needs no address)"  # noqa: S105 -- a question


class FeishuAccount(Value, frozen=True):
    """The keys of a table [feishu.ACCOUNT]."""

    app_id: str
    """The id of the app, which begins with cli_."""
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
            check_http("api", self.api, FEISHU)
        if not self.app_id.startswith("cli_"):
            raise Invalid("app_id", f"{self.app_id!r} isn't an app's", "It begins with cli_; see Credentials.")
        token, key = self.verification_token, self.encrypt_key
        if LEFT not in (token, key) and bool(token.reveal()) is not bool(key.reveal()):
            fix = "Set both under Events & Callbacks, Encryption Strategy; or leave both out for a long connection."
            raise Invalid("encrypt_key", "it and verification_token go together", fix)

    @property
    def connects(self) -> Api:
        """The Open API, for this app."""
        return Api(self.app_id, self.app_secret, (self.api or self.domain.at("open")).rstrip("/"))

    @classmethod
    def questions(cls) -> tuple[SetupQuestion, ...]:
        """The questions, in the order in which they are asked."""
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
        made = await register(show, {domain: api or domain.at("accounts") for domain in Domain})
        return {**answers, **made}

    @classmethod
    async def added(cls, answers: Mapping[str, str]) -> Added:
        """Ask Feishu which app it is and what it may do."""
        keys = cls._of(answers)
        async with calling(keys.connects) as api:
            try:
                bot = await api.bot()
            except SendNever as error:
                raise Invalid("app_secret", str(error), "Add the feature Bot to the app, and publish it.") from error
            lacks = await api.lacks()
        name = str(bot.get("app_name") or "segue")
        said = f"The app is {name}. {lacks or 'It has every scope that it needs.'}"
        written = {"app_id": keys.app_id, "api": keys.api}
        written |= {} if keys.domain is Domain.FEISHU else {"domain": str(keys.domain)}
        secrets = {key: secret for key in _SECRETS if (secret := getattr(keys, key)).reveal()}
        # Only who listens to a connection can wait for somebody to write.
        link = f"{keys.domain.at('applink')}/client/bot/open?appId={keys.app_id}"
        return Added(name, said, written, secrets, link="" if "encrypt_key" in secrets else link)

    @classmethod
    async def meet(cls, answers: Mapping[str, str], after: str) -> FoundOwner:
        """Listen until a person writes in private."""
        return await met(cls._of(answers).adapter, after)

    @classmethod
    def _of(cls, answers: Mapping[str, str]) -> Self:
        given = {key: answer.strip() for key, answer in answers.items()}
        domain = given.get("domain") or Domain.FEISHU
        if domain not in tuple(Domain):
            raise Invalid("domain", f"{domain!r} is none", 'Write "feishu" or "lark".')
        secrets = {key: Secret(given.get(key, "")) for key in _SECRETS}
        return cls(given.get("app_id", ""), **secrets, domain=Domain(domain), api=given.get("api", ""))

    async def greet(self, account: str, user: str) -> str:
        """Say hello in the private chat."""
        del account
        async with calling(self.connects) as api:
            body = {"receive_id": user, "msg_type": "text", "content": json.dumps(_HELLO)}
            try:
                await api.call("POST", "/im/v1/messages", body, receive_id_type="open_id")
            except SendNever as error:
                return f"Feishu didn't let me say hello: {error}"
        return "Said hello to you on Feishu."

    def adapter(self, account: str, files: Files, pace: Pace = Pace()) -> Feishu:  # noqa: B008 -- frozen
        """The adapter for this account: it opens a connection, unless Feishu calls."""
        if self.encrypt_key.reveal():
            proof = self.verification_token, self.encrypt_key
            return FeishuByEvents(account, self.connects, *proof, files, pace=pace)
        return Feishu(account, self.connects, files, pace=pace)
