"""An account of the Feishu adapter, as the host writes it in segue.toml."""

from collections.abc import Callable, Mapping

from segue.adapters.feishu.adapter import Feishu
from segue.adapters.feishu.api import FEISHU, Api
from segue.adapters.feishu.outgoing import Pace
from segue.adapters.feishu.registration import Domain, register
from segue.adapters.feishu.webhook import FeishuByEvents
from segue.adapters.shared.outcomes import calling, check_http
from segue.adapters.shared.setup import greeted, keys_of, met, written
from segue.core.contracts.adapters import Files
from segue.core.contracts.setup import Added, FoundOwner, SetupQuestion
from segue.core.values import LEFT, Secret, Value
from segue.errors import Invalid, SendNever

_HELLO = '{"text": "Hello. Write to me here, or type /help."}'
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

    def adapter(self, account: str, files: Files, pace: Pace = Pace()) -> Feishu:  # noqa: B008 -- frozen
        """The adapter for this account: it opens a connection, unless Feishu calls."""
        if self.encrypt_key.reveal():
            return FeishuByEvents(account, self.calls, self.verification_token, self.encrypt_key, files, pace=pace)
        return Feishu(account, self.calls, files, pace=pace)
