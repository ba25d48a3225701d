"""The door of Feishu: events that are sealed and signed and mean ill; the Feishu behind it answers as it likes."""

import asyncio
import json
import random
import time
from typing import Any

from segue.adapters.feishu.adapter import FeishuByEvents
from segue.adapters.feishu.api import Api
from segue.adapters.feishu.messages import Message
from segue.core.contracts.adapters import Accept, Intake
from segue.core.values import Secret, Value
from segue.errors import SendLater, SendNever
from segue.testing import Shelf
from segue.testing.asgi import post
from tests.drills.hostile_names import hostile
from tests.drills.payloads import Named as Known
from tests.drills.payloads import Payloads, mean
from tests.servers.feishu import KEY, TOKEN, sealed, signed


class UserId(Value, frozen=True):
    """Somebody, by the id that the app knows them by."""

    open_id: str = ""


class Received(Value, frozen=True):
    """That somebody wrote."""

    sender: dict[str, Any]
    message: Message


class Named(Value, frozen=True):
    """A message, by its id alone."""

    message_id: str = ""


class Updated(Value, frozen=True):
    """That a message was edited."""

    message: Named = Named()


class Recalled(Value, frozen=True):
    """That a message was taken back."""

    message_id: str
    chat_id: str
    recall_type: str = ""


class BotAdded(Value, frozen=True):
    """That the bot was brought into a group."""

    chat_id: str
    operator_id: UserId = UserId()


class Choice(Value, frozen=True):
    """What the button of a card was given."""

    choice: str = ""
    thread: str = ""


class Action(Value, frozen=True):
    """The button of a card."""

    value: Choice = Choice()


class Card(Value, frozen=True):
    """The card that something was pressed in."""

    open_message_id: str = ""
    open_chat_id: str = ""


class CardPress(Value, frozen=True):
    """That somebody pressed a button."""

    operator: UserId
    action: Action = Action()
    context: Card = Card()


class Header(Value, frozen=True):
    """The kind of an event, and its id."""

    event_type: str = ""
    event_id: str = ""


class Callback(Value, frozen=True):
    """An event as it is delivered."""

    header: Header
    event: Received | None = None


_MESSAGES = ("om_1", "om_2", "om_3", "")
_CONTENTS: tuple[Any, ...] = (
    {"text": "@_user_1 hello @_all"},
    {
        "title": "a",
        "content": [[{"tag": "text", "text": "b", "style": ["bold"]}, {"tag": "at", "user_id": "@_user_1"}]],
    },
    {"content": [[{"tag": "img", "image_key": "img_1"}, 7], 7], "title": 7},
    {"image_key": "img_1"},
    {"file_key": "../..", "file_name": "../../x"},
)


def _somebody(dice: random.Random, name: str) -> dict[str, Any]:
    """A person as an event tells them, or as they are in what is fetched; or nobody at all."""
    who = dice.choice(("ou_1", "ou_2", "ou_bot", ""))
    return dice.choice(({name: {"open_id": who}}, {name: {"open_id": who}}, {"id": who}, {name: mean(dice)}))


_FEISHU: Known = {
    "event_type": lambda dice: dice.choice([*_TOLD, ""]),
    "open_id": lambda dice: dice.choice(("ou_1", "ou_2", "ou_bot", "")),
    "sender": lambda dice: {
        "sender_type": dice.choice(("user", "user", "user", "app")),
        **_somebody(dice, "sender_id"),
    },
    "mentions": lambda dice: [{"key": "@_user_1", "name": hostile(dice, 6), **_somebody(dice, "id")}, {}],
    "body": lambda dice: {"content": json.dumps(dice.choice((*_CONTENTS, mean(dice))))},
    "chat_id": lambda dice: dice.choice(("oc_1", "oc_2", "")),
    "chat_type": lambda dice: dice.choice(("p2p", "group", "topic_group")),
    "message_id": lambda dice: dice.choice(_MESSAGES),
    "parent_id": lambda dice: dice.choice(_MESSAGES),
    "root_id": lambda dice: dice.choice(_MESSAGES),
    "thread_id": lambda dice: dice.choice(("omt_1", "", "")),
    "upper_message_id": lambda dice: dice.choice(_MESSAGES),
    "message_type": lambda dice: dice.choice(("text", "text", "post", "image", "file", "merge_forward", "interactive")),
    "msg_type": lambda dice: dice.choice(("text", "post", "interactive", "sticker")),
    "content": lambda dice: json.dumps(dice.choice((*_CONTENTS, mean(dice)))),
    "create_time": lambda dice: dice.choice(("1700000000000", 1700000000000, "soon", "", "9" * 30)),
    "update_time": lambda dice: dice.choice(("1700000000000", 1700000000000, "soon", "", "9" * 30)),
    "recall_type": lambda _dice: "message_owner",
}
_TOLD: dict[str, Any] = {
    "im.message.receive_v1": Received,
    "im.message.updated_v1": Updated,
    "im.message.recalled_v1": Recalled,
    "im.chat.member.bot.added_v1": BotAdded,
    "card.action.trigger": CardPress,
}
"""Events, by the form of each."""
READ = (Callback, *_TOLD.values(), Message)


class Tenancy(Api):
    """Feishu's answers to the calls of its adapter."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__("cli_1", Secret("secret"), "https://open.feishu.cn")
        self._dice = dice
        self._bodies = Payloads(dice, _FEISHU)

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None, **query: Any) -> dict[str, Any]:
        """What it likes."""
        del method, body, query
        dice = self._dice
        if dice.random() < 0.1:
            raise dice.choice((SendNever, SendLater))(f"{path} is too late")
        told = {"user": {"name": hostile(dice, 6)}, "name": mean(dice), "description": mean(dice), "chat_mode": "p2p"}
        told["items"] = [self._bodies.of(Message) for _ in range(2)]
        told |= {dice.choice([*told]): mean(dice)} if dice.random() < 0.2 else {}
        return told


class Bird(FeishuByEvents):
    """The adapter of Feishu, whose platform is here."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__("main", Tenancy(dice), Secret(TOKEN), Secret(KEY), Shelf())
        self._api._me = "ou_bot"
        # Names are looked up every time: nothing that was told once stays.
        self._api._lookups._clock = lambda: time.monotonic() * 10_000

    async def run(self, intake: Intake) -> None:
        """It is called; nobody has to be told where."""
        intake.connected()
        await asyncio.Event().wait()


class FeishuDoor:
    """Somebody who signs for Feishu, and means ill."""

    def __init__(self, bird: Bird, accept: Accept, dice: random.Random) -> None:
        self._door = bird.webhook(accept)
        self._dice = dice
        self._bodies = Payloads(dice, _FEISHU)

    async def feishu_event(self) -> str:
        """One event or button."""
        kind = self._dice.choice([*_TOLD])
        header = {"event_type": kind, "event_id": str(self._dice.randrange(10**9)), "token": TOKEN}
        told: Any = {"header": header, "event": self._bodies.of(_TOLD[kind])}
        if self._dice.random() < 0.2:
            told = self._bodies.of(Callback)
        if isinstance(told, dict) and isinstance(named := told.get("header"), dict):
            named["token"] = TOKEN
        try:
            body = sealed(told)
        except RecursionError:
            return "feishu event"  # nobody can write it
        answer = await post(self._door, "/in/feishu/main", body, signed(body))
        # What can't be looked up yet is told again, and more than a body may have never is.
        assert answer.status in (200, 413, 503), f"{str(told)[:300]!a} was answered {answer.status}"
        return "feishu event"
