"""An account of the WhatsApp adapter, as the host writes it in segue.toml: by either of two roads."""

import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from platformdirs import user_data_path

from segue.adapters.shared.outcomes import calling, check_http
from segue.adapters.whatsapp.adapter import WhatsApp
from segue.adapters.whatsapp.bridge import opened
from segue.adapters.whatsapp.graph import PUBLIC, Graph
from segue.adapters.whatsapp.outgoing import Pace
from segue.adapters.whatsapp.phone import WhatsAppByPhone
from segue.core.contracts.adapters import Files
from segue.core.contracts.setup import Added, SetupQuestion
from segue.core.values import LEFT, Secret, Value
from segue.errors import Disconnected, Invalid

CLOUD, PHONE = "cloud", "phone"
TERMS = (
    "There are two roads to WhatsApp.\n"
    "cloud: WhatsApp's Cloud API, for businesses. Its terms bar personal use and, where no regulator says otherwise, "
    "providers of general-purpose AI. A number has 1,000 free messages a month. Beyond them a message costs money; "
    "without a payment method WhatsApp takes it and never delivers it. Segue counts them (/usage), and warns you.\n"
    "phone: a device linked to a WhatsApp account, by Baileys. It costs nothing, and it breaks WhatsApp's terms: the "
    "account may be closed. Use a number that you can do without."
)
_SECRETS = ("token", "app_secret", "verify_token")
_MAKE = "Make an app of the kind Business with WhatsApp in it: https://developers.facebook.com/apps"


class WhatsAppAccount(Value, frozen=True):
    """The keys of a table [whatsapp.ACCOUNT]: those of the Cloud API, or the folder of a linked device."""

    number: str = ""
    """The id of the number (not the number itself), under API Setup of the app."""
    token: Secret = Secret("")
    """The access token of a system user, which doesn't end."""
    app_secret: Secret = Secret("")
    """The secret with which WhatsApp signs its calls, under App settings, Basic."""
    verify_token: Secret = Secret("")
    """A word of your own, which WhatsApp shows when the webhook is set up."""
    device: str = ""
    """The folder with the keys of a linked device; then no number is needed."""
    api: str = ""
    """The address of the Graph API with its version, or of the server that devices connect to; for tests."""

    def __post_init__(self) -> None:
        if self.device:
            if self.number:
                raise Invalid("device", "there is a number, too", "Write an account for each road.")
            return
        check_http("api", self.api or PUBLIC, PUBLIC)
        if not self.number.isascii() or not self.number.isdecimal():
            raise Invalid("number", f"{self.number!r} is no id of a number", "Copy the Phone number ID of API Setup.")
        for key in _SECRETS:
            if getattr(self, key) != LEFT and not getattr(self, key).reveal():
                raise Invalid(key, "it is empty", "Without it, anybody could call in WhatsApp's name.")

    @property
    def graph(self) -> Graph:
        """The Graph API, for this number."""
        return Graph(self.token, self.number, (self.api or PUBLIC).rstrip("/"))

    @classmethod
    def questions(cls) -> tuple[SetupQuestion, ...]:
        """The questions, in the order in which they are asked; the first one says what one agrees to."""
        cloud, phone = ("road", CLOUD), ("road", PHONE)
        token = "The access token of a system user with whatsapp_business_messaging"  # noqa: S105 -- a question
        word = "A verify token: any word of your own (empty: one is made)"
        return (
            SetupQuestion("road", f"{TERMS}\nWhich road, cloud or phone", default=CLOUD),
            SetupQuestion("number", f"{_MAKE}\nThe Phone number ID, under WhatsApp, API Setup", when=cloud),
            SetupQuestion("token", token, secret=True, when=cloud),
            SetupQuestion("app_secret", "The app secret, under App settings, Basic", secret=True, when=cloud),
            SetupQuestion("verify_token", word, secret=True, default="", when=cloud),
            SetupQuestion("device", "The folder for the device's keys (empty: a new one)", default="", when=phone),
            SetupQuestion("api", "The address of the API (empty: WhatsApp's own)", default=""),
        )

    @classmethod
    async def scanned(cls, answers: Mapping[str, str], show: Callable[[str], None]) -> Mapping[str, str]:
        """Link a device, by a code that the phone scans; one that is linked already shows none."""
        if answers.get("road") != PHONE:
            return answers
        home = Path(os.environ.get("SEGUE_HOME") or user_data_path("segue"))
        named = answers.get("device", "").strip()
        folder = os.path.abspath(named or home / "whatsapp" / f"device-{secrets.token_hex(4)}")  # noqa: PTH100, ASYNC240
        await _linked(folder, answers.get("api", ""), show)
        return {**answers, "device": folder}

    @classmethod
    async def added(cls, answers: Mapping[str, str]) -> Added:
        """Ask WhatsApp whose number, or whose device, it is."""
        keys = cls._of(answers)
        if keys.device:
            me = await _linked(keys.device, keys.api, lambda _: None)
            said = f"The device is linked to {me.partition('@')[0]}. Its keys are in {keys.device}: show them nobody."
            return Added("phone", said, {"device": keys.device, "api": keys.api})
        async with calling(keys.graph) as graph:
            found = await graph.about()
        said = (
            f"The number is {found.get('display_phone_number') or keys.number}, {found.get('verified_name')}.\n"
            "Under WhatsApp, Configuration, give the callback URL https://YOUR-ADDRESS/in/whatsapp/NAME and the verify "
            f"token {keys.verify_token.reveal()}, and subscribe to the field messages.\n"
            "Your own user id is your number with its country code, in digits alone."
        )
        secret = {key: getattr(keys, key) for key in _SECRETS}
        return Added("main", said, {"number": keys.number, "api": keys.api}, secret)

    @classmethod
    def _of(cls, answers: Mapping[str, str]) -> Self:
        given = {key: answer.strip() for key, answer in answers.items()}
        road, api = given.get("road", CLOUD), given.get("api", "").rstrip("/")
        if road not in (CLOUD, PHONE):
            raise Invalid("road", f"{road!r} is no road", 'Write "cloud" or "phone".')
        if road == PHONE:
            return cls(device=answers["device"], api=api)
        given["verify_token"] = given.get("verify_token") or secrets.token_urlsafe(24)
        token, proof, word = (Secret(given.get(key, "")) for key in _SECRETS)
        return cls(given.get("number", ""), token, proof, word, api=api)

    async def greet(self, account: str, user: str) -> str:
        """Say how to begin: a business may only answer, and each message counts."""
        del account, user
        if self.device:
            return "Write to the linked account from another one, or to yourself, once `segue serve` runs."
        async with calling(self.graph) as graph:
            shown = (await graph.about()).get("display_phone_number")
        return f"Write to {shown} once `segue serve` runs: WhatsApp lets a business answer, not write first."

    def adapter(self, account: str, files: Files, pace: Pace = Pace()) -> WhatsApp | WhatsAppByPhone:  # noqa: B008 -- frozen
        """The adapter for this account, by its road."""
        if self.device:
            return WhatsAppByPhone(account, Path(self.device), files, self.api)
        proof, word = self.app_secret, self.verify_token
        return WhatsApp(account, self.graph, files, app_secret=proof, verify_token=word, pace=pace)


async def _linked(device: str, api: str, show: Callable[[str], None]) -> str:
    """Wait until a device is linked and connected; returns whose it is."""
    async with opened(Path(device), api) as line:
        async for told in line.events():
            match told["event"]:
                case "qr":
                    show(told["code"])
                case "open":
                    return str(told["me"]["id"])
                case "closed":
                    raise Disconnected(f"WhatsApp closed the line: {told['why']}.")
                case _:
                    continue  # a message: it isn't acknowledged, so it comes again
    return ""
