"""The doors of Slack, Discord, Signal and WhatsApp: their adapters, and platforms that answer as they like."""

import asyncio
import json
import random
import time
from typing import Any
from urllib.parse import urlencode

from segue.adapters.discord.adapter import Discord
from segue.adapters.discord.api import MESSAGES
from segue.adapters.discord.api import Api as DiscordApi
from segue.adapters.discord.gateway import Gateway, Position
from segue.adapters.discord.incoming import Incoming
from segue.adapters.discord.payloads import EVENTS, Channel, Message, User
from segue.adapters.shared.web import Upload
from segue.adapters.signal.adapter import Signal
from segue.adapters.signal.daemon import Daemon
from segue.adapters.signal.envelopes import Envelope, Said
from segue.adapters.signal.incoming import Hears
from segue.adapters.slack.adapter import SlackByEvents, signature
from segue.adapters.slack.api import Api as SlackApi
from segue.adapters.slack.events import Callback, Command, Press
from segue.adapters.whatsapp.adapter import PROOF, WhatsApp
from segue.adapters.whatsapp.adapter import signature as hub_signature
from segue.adapters.whatsapp.graph import Graph
from segue.adapters.whatsapp.payloads import Change, Status, Webhook
from segue.adapters.whatsapp.payloads import Message as WhatsAppMessage
from segue.core.contracts.adapters import Accept, Intake
from segue.core.values import Secret
from segue.errors import Disconnected, SendError, SendLater, SendNever
from segue.testing import Shelf
from segue.testing.asgi import post
from tests.drills.hostile_names import hostile
from tests.drills.payloads import Named, Payloads, mean

_SIGNED = Secret("the secret of the app")
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_ME = "77"
_NUMBER = "+15550100"


def _number(dice: random.Random) -> str:
    """An id of Discord's, of a few that come again."""
    return dice.choice((_ME, *(str(n) for n in range(1, 20)), str(dice.randrange(2**63))))


def _ts(dice: random.Random) -> str:
    return f"17000000{dice.randrange(60):02}.{dice.randrange(3):06}"


_SLACK: Named = {
    "type": lambda dice: dice.choice(("message", "message", "app_mention", "member_joined_channel", "block_actions")),
    "subtype": lambda dice: dice.choice(("", "", "", "message_changed", "message_deleted", "file_share", "tombstone")),
    "channel": lambda dice: dice.choice(("C1", "C1", "G1", "D1", "")),
    "channel_id": lambda dice: dice.choice(("C1", "D1", "")),
    "user": lambda dice: dice.choice(("U1", "U2", "UBOT", "USLACKBOT", "")),
    "user_id": lambda dice: dice.choice(("U1", "UBOT")),
    "text": lambda dice: str(mean(dice)),
    "command": lambda dice: dice.choice(("/segue", "/undo", "")),
    "ts": _ts,
    "event_ts": _ts,
    "thread_ts": _ts,
    "message_ts": _ts,
    "url_private": lambda dice: dice.choice(("", "https://files.slack.com/x", "http://[", "file:///etc/passwd")),
}
_DISCORD: Named = {
    "id": _number,
    "channel_id": _number,
    "guild_id": _number,
    "parent_id": _number,
    "last_message_id": _number,
    "message_id": _number,
    "content": lambda dice: str(mean(dice)),
    "type": lambda dice: dice.choice((0, 0, 0, 0, 1, 2, 3, 11, 15, 19)),
    "webhook_id": lambda dice: dice.choice((None, None, None, "1")),
    "bot": lambda dice: dice.random() < 0.1,
    "url": lambda dice: dice.choice(("", "https://cdn.discordapp.com/x", "http://[", "file:///etc/passwd")),
    "edited_timestamp": lambda dice: dice.choice(("2026-11-17T12:00:00+00:00", "now", "")),
    "joined_at": lambda dice: dice.choice(
        ("2026-11-17T12:00:00+00:00", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59+00:00")
    ),
}
_TOLD: dict[str, Any] = {**EVENTS, "READY": User, "RESUMED": User}
"""Events of Discord's gateway, by the type that reads each."""
_SIGNAL: Named = {
    "sourceUuid": lambda dice: dice.choice((f"0000000{dice.randrange(4)}-0000-4000-8000-000000000000", "")),
    "sourceNumber": lambda dice: dice.choice((f"+1555000{dice.randrange(4)}", _NUMBER, "")),
    "number": lambda dice: dice.choice((f"+1555000{dice.randrange(4)}", _NUMBER)),
    "timestamp": lambda dice: dice.choice((1_700_000_000_000 + dice.randrange(40), dice.randrange(2**63))),
    "message": lambda dice: str(mean(dice)),
    "dataMessage": lambda dice: Payloads(dice, _SIGNAL).whole(Said),
    "groupId": lambda dice: dice.choice(("Z3JvdXA=", "", "/../")),
    "start": lambda dice: dice.choice((0, 1, -1, 2**31, -(2**63))),
    "length": lambda dice: dice.choice((0, 1, -1, 2**31, -(2**63))),
}
_WHATSAPP: Named = {
    "field": lambda dice: dice.choice(("messages", "messages", "messages", "account_update")),
    "value": lambda dice: Payloads(dice, _WHATSAPP).whole(Change),
    "metadata": lambda dice: {"phone_number_id": dice.choice((_NUMBER, _NUMBER, _NUMBER, "1"))},
    "messages": lambda dice: [Payloads(dice, _WHATSAPP).of(WhatsAppMessage) for _ in range(dice.randrange(3))],
    "statuses": lambda dice: [Payloads(dice, _WHATSAPP).of(Status) for _ in range(dice.randrange(2))],
    "type": lambda dice: dice.choice(("text", "image", "system", "interactive", "reaction", "unsupported")),
    "timestamp": lambda dice: dice.choice((str(int(time.time())), "0", "9" * dice.randrange(1, 400))),
    "id": lambda dice: dice.choice((f"wamid.{dice.randrange(1000)}", hostile(dice, 4))),
    "from": lambda dice: dice.choice((f"1555000{dice.randrange(4)}", "")),
    "from_user_id": lambda dice: dice.choice((f"US.{dice.randrange(4)}", "")),
    "body": lambda dice: str(mean(dice)),
    "status": lambda dice: dice.choice(("sent", "failed", "read", "x")),
    "url": lambda dice: dice.choice(("", "https://lookaside.fbsbx.com/x", "http://[", "file:///etc/passwd")),
}
_OFTEN = (20, 6, 3, 2, 10, 3, 1, 1, 1, 2, 1, 1, 1)


class Workspace(SlackApi):
    """Slack's answers to the calls of its adapter."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__(Secret("xoxb"))
        self._dice = dice

    async def call(self, method: str, **fields: Any) -> dict[str, Any]:
        """What it likes: names that mean ill, things of another shape, or a refusal."""
        dice = self._dice
        if method == "auth.test":
            return {"user_id": "UBOT"}
        if dice.random() < 0.1:
            raise dice.choice((SendNever, SendLater))(f"{method} is too late")
        told = {"profile": {"display_name": hostile(dice, 6)}, "name": mean(dice), "topic": {"value": mean(dice)}}
        told |= {dice.choice([*told]): mean(dice)} if dice.random() < 0.2 else {}
        return {"ok": True} | {of: told if dice.random() < 0.9 else mean(dice) for of in fields}


class App(SlackByEvents):
    """The adapter of Slack, whose platform is here."""

    def __init__(self, dice: random.Random) -> None:
        # Names are looked up every time: nothing that was told once stays.
        super().__init__("main", Workspace(dice), _SIGNED, Shelf(), ticks=lambda: time.monotonic() * 10_000)

    async def run(self, intake: Intake) -> None:
        """It is called; nobody has to be told where."""
        intake.connected()
        await asyncio.Event().wait()


class SlackDoor:
    """Somebody who signs for Slack, and means ill."""

    def __init__(self, app: App, accept: Accept, dice: random.Random) -> None:
        self._door = app.webhook(accept)
        self._dice = dice
        self._bodies = Payloads(dice, _SLACK)

    async def slack_event(self) -> str:
        """One event, command or button."""
        body, headers = self._made()
        at = str(int(time.time()))
        signed = {"X-Slack-Request-Timestamp": at, "X-Slack-Signature": signature(_SIGNED, at, body)}
        answer = await post(self._door, "/in/slack/main", body, headers | signed)
        # More than a body may have is told to Slack, which gives up in time.
        # A gateway that is too busy says so, and Slack sends it again.
        assert answer.status in (200, 413, 503), f"{body[:300]!a} was answered {answer.status}"
        return "slack event"

    def _made(self) -> tuple[bytes, dict[str, str]]:
        dice = self._dice
        chance = dice.random()
        if chance < 0.7:
            return self._bodies.encoded(Callback), {}
        if chance < 0.85:
            return urlencode({"payload": self._bodies.encoded(Press)}).encode(), _FORM
        typed = self._bodies.of(Command)
        fields = typed if isinstance(typed, dict) else {"command": typed}
        return urlencode(fields, errors="surrogatepass").encode(), _FORM


class Server(DiscordApi):
    """Discord's answers to the calls of its adapter."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__(Secret("token"), "http://127.0.0.1:9")
        self._dice = dice
        self._bodies = Payloads(dice, _DISCORD)

    async def call(self, method: str, path: str, body: object = None, file: Upload | None = None, **ids: str) -> Any:
        """What it likes."""
        del method, body, file
        dice = self._dice
        if dice.random() < 0.05:
            raise dice.choice((SendNever, SendLater))(f"{path} is too late")
        if path.startswith(MESSAGES):
            return [self._bodies.of(Message) for _ in range(3)] if dice.random() < 0.9 else mean(dice)
        if path.startswith("/channels/") and dice.random() < 0.9:
            named = {"name": hostile(dice, 4), "topic": hostile(dice, 4)}
            return {"id": ids["channel_id"], "type": dice.choice((0, 1, 11, 15)), **named}
        return self._bodies.of(Channel)


class Guest(Discord):
    """The adapter of Discord, whose platform is here."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__("main", Secret("token"), Shelf())
        self._api = self._channels._api = Server(dice)

    async def run(self, intake: Intake) -> None:
        """Somebody else tells it."""
        intake.connected()
        await asyncio.Event().wait()

    def gateway(self, accept: Accept) -> Gateway:
        """What takes events in, for one life of the connection."""
        incoming = Incoming(self._own, self._api, self._channels, self._attachments, _ME, accept)
        return Gateway(self._api, incoming)


class DiscordDoor:
    """Somebody who tells what Discord's gateway would, and means ill."""

    def __init__(self, guest: Guest, accept: Accept, dice: random.Random) -> None:
        self._dice = dice
        self._bodies = Payloads(dice, _DISCORD)
        self._gateway = guest.gateway(accept)
        # Something was heard before, so what was missed since then is read back.
        self._gateway.position = Position(seen=1, since=1, chats=("1",))

    async def discord_event(self) -> str:
        """One event."""
        [name] = self._dice.choices([*_TOLD], _OFTEN)
        raw = self._bodies.encoded(_TOLD[name])
        try:
            told = json.loads(raw)
        except (ValueError, RecursionError):
            return "discord event"  # the library's to refuse
        try:
            await self._gateway._take(name, told)
        except (SendError, Disconnected):
            """What can't be looked up now is told again."""
        return "discord event"


class Hub(Daemon):
    """A signal-cli daemon's answers to the calls of its adapter."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__("http://127.0.0.1:9", _NUMBER)
        self._dice = dice

    async def call(self, method: str, /, slowest: float = 0.0, **params: Any) -> Any:
        """What it likes."""
        del slowest, params
        if self._dice.random() < 0.2:
            raise SendNever(f"{method} is too late")
        return {"data": "aGVsbG8="} if self._dice.random() < 0.5 else mean(self._dice)


class Phone(Signal):
    """The adapter of Signal, whose daemon is here."""

    def __init__(self, dice: random.Random, hears: Hears = Hears.EVERYBODY) -> None:
        super().__init__("main", Hub(dice), _NUMBER, Shelf(), hears)

    async def run(self, intake: Intake) -> None:
        """Somebody else tells it."""
        intake.connected()
        await asyncio.Event().wait()


class SignalDoor:
    """Somebody who tells what a signal-cli daemon would, and means ill."""

    def __init__(self, phone: Phone, accept: Accept, dice: random.Random) -> None:
        self._phones = (phone, Phone(dice, Hears.NOTES))
        self._accept = accept
        self._dice = dice
        self._bodies = Payloads(dice, _SIGNAL)

    async def signal_event(self) -> str:
        """One event, for an agent's own account or for a person's notes."""
        raw = self._bodies.encoded(Envelope)
        try:
            event = {"envelope": json.loads(raw)} if self._dice.random() < 0.9 else json.loads(raw)
        except (ValueError, RecursionError):
            event = raw.decode(errors="backslashreplace")
        await self._dice.choice(self._phones).take(event, self._accept)
        return "signal event"


class Business(Graph):
    """WhatsApp's answers to the calls of its adapter."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__(Secret("token"), _NUMBER, "http://127.0.0.1:9")
        self._dice = dice

    async def _call(self, method: str, path: str, body: Any = b"", **headers: str) -> dict[str, Any]:
        """What it likes, when it is asked."""
        if method != "GET":
            return await super()._call(method, path, body, **headers)
        if self._dice.random() < 0.2:
            raise SendNever(f"{path} is too late")
        return {"url": _WHATSAPP["url"](self._dice), "file_size": mean(self._dice)}


class Line(WhatsApp):
    """The adapter of WhatsApp, whose platform is here."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__("cloud", Business(dice), Shelf(), app_secret=_SIGNED, verify_token=Secret("word"))

    async def run(self, intake: Intake) -> None:
        """It is called; nobody has to be told where."""
        intake.connected()
        await asyncio.Event().wait()


class WhatsAppDoor:
    """Somebody who signs for WhatsApp, and means ill."""

    def __init__(self, line: Line, accept: Accept, dice: random.Random) -> None:
        self._door = line.webhook(accept)
        self._dice = dice
        self._bodies = Payloads(dice, _WHATSAPP)

    async def whatsapp_event(self) -> str:
        """One call, which may tell several things."""
        body = self._bodies.encoded(Webhook)
        if self._dice.random() < 0.9:
            change = {"metadata": {"phone_number_id": _NUMBER}, "messages": [self._bodies.of(WhatsAppMessage)]}
            told = json.dumps(change).encode() if self._dice.random() < 0.8 else self._bodies.encoded(Change)
            body = b'{"object":"x","entry":[{"changes":[{"field":"messages","value":%s}]}]}' % told
        answer = await post(self._door, "/in/whatsapp/cloud", body, {PROOF: hub_signature(_SIGNED, body)})
        # What can't be fetched yet is told again, and more than a body may have never is.
        assert answer.status in (200, 413, 503), f"{body[:300]!a} was answered {answer.status}"
        return "whatsapp event"
