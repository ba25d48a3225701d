"""An account of the WhatsApp adapter, as the host writes it in segue.toml."""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Self

from segue.adapters.shared.outcomes import check_http, connecting
from segue.adapters.whatsapp.adapter import WhatsApp
from segue.adapters.whatsapp.graph import PUBLIC, Graph
from segue.adapters.whatsapp.outgoing import Pace
from segue.core.contracts.adapters import Files
from segue.core.contracts.setup import Added, SetupQuestion
from segue.core.values import LEFT, Secret, Value
from segue.errors import Invalid

TERMS = """\
WhatsApp's Cloud API is for businesses: its terms bar personal use and, where no regulator says otherwise, providers of
general-purpose AI. A number has 1,000 free messages a month. Beyond them a message costs money, and without a payment
method the call looks like a success and nothing is delivered: Segue counts them (/usage), and warns you."""


class WhatsAppAccount(Value, frozen=True):
    """The keys of a table [whatsapp.ACCOUNT]."""

    number: str
    """The id of the number (not the number itself), under API Setup of the app."""
    token: Secret
    """The access token of a system user, which doesn't end."""
    app_secret: Secret
    """The secret with which WhatsApp signs its calls, under App settings, Basic."""
    verify_token: Secret
    """A word of your own, which WhatsApp shows when the webhook is set up."""
    api: str = PUBLIC
    """The address of the Graph API with its version."""

    def __post_init__(self) -> None:
        check_http("api", self.api, PUBLIC)
        if not self.number.isascii() or not self.number.isdecimal():
            raise Invalid("number", f"{self.number!r} is no id of a number", "Copy the Phone number ID of API Setup.")
        for key, secret in (
            ("token", self.token),
            ("app_secret", self.app_secret),
            ("verify_token", self.verify_token),
        ):
            if secret != LEFT and not secret.reveal():
                raise Invalid(key, "it is empty", "Without it, anybody could call in WhatsApp's name.")

    @classmethod
    def questions(cls) -> tuple[SetupQuestion, ...]:
        """The questions, in the order in which they are asked; the first one says what one agrees to."""
        return (
            SetupQuestion(
                "number",
                f"{TERMS}\n\nMake an app of the kind Business with WhatsApp in it: https://developers.facebook.com/apps\n"
                "The Phone number ID, under WhatsApp, API Setup",
            ),
            SetupQuestion("token", "The access token of a system user with whatsapp_business_messaging", secret=True),
            SetupQuestion("app_secret", "The app secret, under App settings, Basic", secret=True),
            SetupQuestion(
                "verify_token", "A verify token: any word of your own (empty: one is made)", secret=True, default=""
            ),
            SetupQuestion("api", "The address of the Graph API (empty: WhatsApp's own)", default=""),
        )

    @classmethod
    async def added(cls, answers: Mapping[str, str]) -> Added:
        """Ask WhatsApp whose number it is."""
        keys = cls._of(answers)
        async with _calling(keys) as graph:
            found = await graph.about("display_phone_number", "verified_name")
        shown = str(found.get("display_phone_number") or keys.number)
        said = (
            f"The number is {shown}, {found.get('verified_name')}.\n"
            "Under WhatsApp, Configuration, give the callback URL https://YOUR-ADDRESS/in/whatsapp/NAME and the verify "
            f"token {keys.verify_token.reveal()}, and subscribe to the field messages.\n"
            "Your own user id is your number with its country code, in digits alone."
        )
        secret = {"token": keys.token, "app_secret": keys.app_secret, "verify_token": keys.verify_token}
        written = {"number": keys.number, **({"api": keys.api} if keys.api != PUBLIC else {})}
        return Added("main", said, written, secret)

    @classmethod
    def _of(cls, answers: Mapping[str, str]) -> Self:
        return cls(
            answers["number"].strip(),
            Secret(answers["token"].strip()),
            Secret(answers["app_secret"].strip()),
            Secret(answers.get("verify_token", "").strip() or secrets.token_urlsafe(24)),
            (answers.get("api") or PUBLIC).rstrip("/"),
        )

    async def greet(self, account: str, user: str) -> str:
        """Say how to begin: a business may only answer, and each message counts."""
        del account, user
        async with _calling(self) as graph:
            shown = (await graph.about("display_phone_number")).get("display_phone_number")
        return f"Write to {shown} once `segue serve` runs: WhatsApp lets a business answer, not write first."

    def adapter(self, account: str, files: Files, pace: Pace = Pace()) -> WhatsApp:  # noqa: B008 -- frozen
        """The adapter for this account."""
        graph = Graph(self.token, self.number, self.api.rstrip("/"))
        return WhatsApp(account, graph, files, app_secret=self.app_secret, verify_token=self.verify_token, pace=pace)


@asynccontextmanager
async def _calling(keys: WhatsAppAccount) -> AsyncIterator[Graph]:
    graph = Graph(keys.token, keys.number, keys.api.rstrip("/"))
    try:
        with connecting():
            yield graph
    finally:
        await graph.close()
