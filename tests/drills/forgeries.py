"""Forged and replayed calls to the webhooks of five platforms: none becomes a turn or a dead letter.

Whoever forges has seen genuine calls and knows everything but the secrets. In between the gateway is started anew.
"""

import asyncio
import json
import random
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from segue.adapters.feishu.adapter import FeishuByEvents
from segue.adapters.feishu.api import Api as FeishuApi
from segue.adapters.feishu.proof import AT, NONCE
from segue.adapters.feishu.proof import PROOF as LARK_PROOF
from segue.adapters.http.signature import SIGNATURE, TIMESTAMP
from segue.adapters.http.webhook import Webhook as HttpWebhook
from segue.adapters.slack.api import Api
from segue.adapters.slack.webhook import SlackByEvents, signature
from segue.adapters.telegram.adapter import HEADER, TelegramByWebhook, secret_of
from segue.adapters.telegram.updates import Peer
from segue.adapters.whatsapp.adapter import PROOF, WhatsApp
from segue.adapters.whatsapp.adapter import signature as whatsapp_signature
from segue.adapters.whatsapp.graph import Graph
from segue.changes.accept import Duplicate, Fresh, FrontDoor
from segue.core.contracts.adapters import Accepted, Arrived, Letter, StatusReport, Unfetched
from segue.core.settings import GatewaySettings
from segue.core.values import PersonId, Secret, SessionId, Value
from segue.database.sqlite import RunsIn, Sqlite
from segue.store import fresh_ids
from segue.testing import Shelf
from tests.adapters.platform import signed
from tests.clients import http_client
from tests.drills.gateways import ACCOUNT, SECRET, Plan, start
from tests.drills.planting import Bug, planted
from tests.drills.town import Town
from tests.forge import kill
from tests.servers.feishu import KEY, sealed
from tests.servers.feishu import TOKEN as VERIFICATION
from tests.servers.feishu import signed as feishu_signed
from tests.servers.whatsapp import NUMBER, change

GENUINE = 40
"""Messages that really come, on each platform."""
_DOOR = FrontDoor(GatewaySettings())
_NOW = 1_700_000_000.0
_WINDOW = 300
_KNOWN = "http secret"
_TOKEN = Secret("123:telegram token")
_SLACK = "slack secret"
_WHATSAPP = "whatsapp secret"
_SLACK_PROOF, _SLACK_TIME = "X-Slack-Signature", "X-Slack-Request-Timestamp"


class Call(Value, frozen=True):
    """A call to a webhook."""

    body: bytes
    headers: tuple[tuple[str, str], ...]


class Found(Value, frozen=True):
    """What came of forgeries and replays."""

    answers: dict[str, int]
    """How often each status was answered."""
    wrong: list[str]


Forge = Callable[[Call, random.Random], tuple[Call, float]]
"""Given a genuine call, a forged or replayed one, and how many seconds later it is made."""


class _House:
    """Five webhooks on one database, from one start to the next."""

    def __init__(self, driver: Sqlite) -> None:
        self._driver = driver
        self._ids = fresh_ids(lambda: _NOW)
        self.now = _NOW
        self.http = HttpWebhook(ACCOUNT, Secret(_KNOWN), self._accept, Shelf(), lambda: self.now)
        bot = TelegramByWebhook("bot", _TOKEN, Shelf(), webhook="https://segue.invalid", clock=lambda: self.now)
        bot._me = Peer(7, username="bot")
        self.telegram = bot.webhook(self._accept)
        # Nobody is there: names can't be had, and nobody waits for them.
        app = SlackByEvents(
            "bot", Api(Secret("xoxb-1"), "http://127.0.0.1:1/api"), Secret(_SLACK), Shelf(), clock=lambda: self.now
        )
        app._me = "U0BOT"
        self.slack = app.webhook(self._accept)
        graph = Graph(Secret("token"), NUMBER, "http://127.0.0.1:1")
        secret, word = Secret(_WHATSAPP), Secret("word")
        business = WhatsApp("main", graph, Shelf(), app_secret=secret, verify_token=word, clock=lambda: self.now)
        self.whatsapp = business.webhook(self._accept)
        api, token, key = FeishuApi("cli_1", Secret("secret"), "http://127.0.0.1:1"), Secret(VERIFICATION), Secret(KEY)
        bird = FeishuByEvents("main", api, token, key, Shelf(), clock=lambda: self.now)
        bird._me = "ou_bot"
        self.feishu = bird.webhook(self._accept)
        self.accepted: Counter[Accepted] = Counter()

    async def _accept(self, arrival: Arrived) -> Accepted:
        assert not isinstance(arrival, Unfetched | StatusReport)
        if isinstance(arrival, Letter):
            outcome = Accepted.DEAD
        else:
            fresh = Fresh(
                PersonId(self._ids()), SessionId(self._ids()), self._ids(), (self._ids(),), self._ids(), self.now
            )
            taken = await self._driver.write(_DOOR.accept, arrival, fresh, None)
            outcome = Accepted.DUPLICATE if isinstance(taken, Duplicate) else Accepted.NEW
        self.accepted[outcome] += 1
        return outcome


def _http_calls(dice: random.Random) -> list[Call]:
    calls = []
    for n in range(GENUINE):
        said = {
            "id": f"m{n}",
            "chat": f"c{n % 4}",
            "chat_kind": "dm",
            "person": {"id": f"p{n % 4}"},
            "text": f"words {n}",
        }
        body = json.dumps(said).encode()
        calls.append(Call(body, tuple(signed(_KNOWN, body, _NOW - dice.randrange(_WINDOW)).items())))
    return calls


def _telegram_calls() -> list[Call]:
    calls = []
    for n in range(GENUINE):
        person = {"id": 500 + n % 4, "is_bot": False, "first_name": "Ann"}
        chat = {"id": 500 + n % 4, "type": "private", "first_name": "Ann"}
        message = {"message_id": n + 1, "date": int(_NOW), "chat": chat, "from": person, "text": f"words {n}"}
        body = json.dumps({"update_id": 900 + n, "message": message}).encode()
        calls.append(Call(body, ((HEADER, secret_of(_TOKEN, "bot")),)))
    return calls


def _slack_signed(secret: str, body: bytes, at: float) -> dict[str, str]:
    return {_SLACK_TIME: str(int(at)), _SLACK_PROOF: signature(Secret(secret), str(int(at)), body)}


def _slack_calls(dice: random.Random) -> list[Call]:
    calls = []
    for n in range(GENUINE):
        event = {"type": "message", "channel": f"D{n % 4}", "user": f"U{n % 4}", "text": f"words {n}", "ts": f"{n}.1"}
        body = json.dumps({"type": "event_callback", "event_id": f"Ev{n}", "event": event}).encode()
        calls.append(Call(body, tuple(_slack_signed(_SLACK, body, _NOW - dice.randrange(_WINDOW)).items())))
    return calls


def _whatsapp_calls() -> list[Call]:
    calls = []
    for n in range(GENUINE):
        said = {
            "id": f"wamid.{n}",
            "from": f"49151{n % 4}",
            "timestamp": str(int(_NOW)),
            "text": {"body": f"words {n}"},
        }
        body = json.dumps(change(messages=[{**said, "type": "text"}])).encode()
        calls.append(Call(body, ((PROOF, whatsapp_signature(Secret(_WHATSAPP), body)),)))
    return calls


def _feishu_event(n: int, text: str) -> dict[str, Any]:
    said = {"message_id": f"om_{n}", "chat_id": f"oc_{n % 4}", "chat_type": "p2p", "message_type": "text"}
    said |= {"content": json.dumps({"text": text}), "create_time": str(int(_NOW * 1000))}
    sender = {"sender_id": {"open_id": f"ou_{n % 4}"}, "sender_type": "user"}
    header = {"event_id": f"event {n}", "event_type": "im.message.receive_v1", "token": VERIFICATION}
    return {"schema": "2.0", "header": header, "event": {"sender": sender, "message": said}}


def _feishu_calls(dice: random.Random) -> list[Call]:
    bodies = [sealed(_feishu_event(n, f"words {n}"), iv=dice.randbytes(16)) for n in range(GENUINE)]
    at = [_NOW - dice.randrange(_WINDOW) for _ in bodies]
    nonces = [f"{dice.randrange(10)}{dice.randbytes(8).hex()}" for _ in bodies]
    proofs = [feishu_signed(*each) for each in zip(bodies, [KEY] * GENUINE, at, nonces, strict=True)]
    return [Call(body, tuple(proof.items())) for body, proof in zip(bodies, proofs, strict=True)]


def _with(call: Call, headers: dict[str, str], body: bytes | None = None) -> Call:
    return Call(call.body if body is None else body, tuple((dict(call.headers) | headers).items()))


def _words(call: Call, dice: random.Random) -> bytes:
    """Another message in the place of a genuine one."""
    body = json.loads(call.body)
    if "message" in body:
        body["update_id"], body["message"]["message_id"] = dice.randrange(10**6, 10**9), dice.randrange(10**6, 10**9)
        body["message"]["text"] = "forged"
    elif "entry" in body:
        [message] = body["entry"][0]["changes"][0]["value"]["messages"]
        message |= {"id": f"wamid.{dice.random()}", "text": {"body": "forged"}}
    elif "event" in body:
        body["event_id"], body["event"]["ts"] = f"Ev{dice.random()}", f"{dice.randrange(10**9)}.2"
        body["event"]["text"] = "forged"
    else:
        body |= {"id": f"forged {dice.random()}", "text": "forged"}
    return json.dumps(body).encode()


def _http_forgeries() -> dict[str, Forge]:
    return _signed_forgeries(SIGNATURE, TIMESTAMP, "v1", signed)


def _slack_forgeries() -> dict[str, Forge]:
    return _signed_forgeries(_SLACK_PROOF, _SLACK_TIME, "v0", _slack_signed)


def _signed_forgeries(proof: str, stamp: str, v: str, sign: Callable[..., dict[str, str]]) -> dict[str, Forge]:
    def other_signature(call: Call, dice: random.Random) -> str:
        real = dict(call.headers)[proof]
        return dice.choice(
            [
                f"{v}=" + dice.randbytes(32).hex(),
                f"{v}=" + "0" * 64,
                real[:-1],
                real[:-2] + "zz",
                real.replace(v, "v9"),
                real.removeprefix(f"{v}="),
                real + f",{v}=" + "0" * 64,
                f"{v}=",
                "",
            ]
        )

    def other_time(call: Call, dice: random.Random) -> str:
        real = dict(call.headers)[stamp]
        return dice.choice([str(int(_NOW) + dice.randrange(1, 300)), f"+{real}", f"{real}.0", f"0{real}", "", "now"])

    def by_another(call: Call, dice: random.Random) -> Call:
        body = _words(call, dice)
        return _with(call, sign(f"guess {dice.random()}", body, _NOW), body)

    def twice(call: Call, dice: random.Random) -> Call:
        guess = (proof, f"{v}=" + dice.randbytes(32).hex())
        return Call(_words(call, dice), (*call.headers, guess))

    return {
        "a signature of one's own": lambda call, dice: (by_another(call, dice), 0.0),
        "other words, the same signature": lambda call, dice: (_with(call, {}, _words(call, dice)), 0.0),
        "no signature": lambda call, dice: (Call(_words(call, dice), ()), 0.0),
        "another signature": lambda call, dice: (_with(call, {proof: other_signature(call, dice)}), 0.0),
        "another time": lambda call, dice: (_with(call, {stamp: other_time(call, dice)}), 0.0),
        "two signatures": lambda call, dice: (twice(call, dice), 0.0),
        "a space more": lambda call, _dice: (_with(call, {}, call.body + b" "), 0.0),
        "again": lambda call, _dice: (call, 0.0),
        "again, later": lambda call, dice: (call, dice.uniform(_WINDOW + 1, 30 * 86400)),
    }


def _telegram_forgeries() -> dict[str, Forge]:
    def other_secret(call: Call, dice: random.Random) -> str:
        real = dict(call.headers)[HEADER]
        return dice.choice(
            [
                dice.randbytes(32).hex(),
                real[:-1],
                f"{real}0",
                real.upper(),
                f" {real}x",
                "",
                secret_of(_TOKEN, "another bot"),
                secret_of(Secret(f"guess {dice.random()}"), "bot"),
            ]
        )

    return {
        "another secret": lambda call, dice: (_with(call, {HEADER: other_secret(call, dice)}, _words(call, dice)), 0.0),
        "no secret": lambda call, dice: (Call(_words(call, dice), ()), 0.0),
        "two secrets": lambda call, dice: (Call(_words(call, dice), (*call.headers, *call.headers)), 0.0),
        "again": lambda call, _dice: (call, 0.0),
        "again, later": lambda call, dice: (call, dice.uniform(0.0, 7 * 86400)),
    }


def _whatsapp_forgeries() -> dict[str, Forge]:
    def other_signature(call: Call, dice: random.Random) -> str:
        real = dict(call.headers)[PROOF]
        guesses = [f"sha256={dice.randbytes(32).hex()}", real[:-1], f"{real}0", real.removeprefix("sha256="), "sha256="]
        return dice.choice([*guesses, real.replace("sha256", "sha1"), f"{real},{real}", ""])

    def by_another(call: Call, dice: random.Random) -> Call:
        body = _words(call, dice)
        return _with(call, {PROOF: whatsapp_signature(Secret(f"guess {dice.random()}"), body)}, body)

    return {
        "a signature of one's own": lambda call, dice: (by_another(call, dice), 0.0),
        "other words, the same signature": lambda call, dice: (_with(call, {}, _words(call, dice)), 0.0),
        "no signature": lambda call, dice: (Call(_words(call, dice), ()), 0.0),
        "another signature": lambda call, dice: (_with(call, {PROOF: other_signature(call, dice)}), 0.0),
        "two signatures": lambda call, dice: (Call(_words(call, dice), (*call.headers, *call.headers)), 0.0),
        "a space more": lambda call, _dice: (_with(call, {}, call.body + b" "), 0.0),
        "again": lambda call, _dice: (call, 0.0),
        "again, later": lambda call, dice: (call, dice.uniform(0.0, 30 * 86400)),
    }


def _feishu_forgeries() -> dict[str, Forge]:
    """Whoever forges has seen sealed bodies, and knows the verification token; not the key."""

    def by_another(call: Call, dice: random.Random) -> Call:
        guess = f"guess {dice.random()}"
        body = sealed(_feishu_event(dice.randrange(10**6, 10**9), "forged"), guess, dice.randbytes(16))
        return _with(call, feishu_signed(body, guess, _NOW) if dice.random() < 0.5 else {}, body)

    def spoiled(call: Call, dice: random.Random) -> bytes:
        raw = bytearray(b64decode(json.loads(call.body)["encrypt"]))
        raw[dice.randrange(len(raw))] ^= 1 << dice.randrange(8)
        cut = dice.choice((len(raw), len(raw), len(raw) - 16, 32, 16, 7, 0))
        return json.dumps({"encrypt": b64encode(raw[:cut]).decode()}).encode()

    def moved(call: Call, dice: random.Random) -> Call:
        """The same characters are signed, divided otherwise between the time and the nonce."""
        at, nonce = (dict(call.headers)[name] for name in (AT, NONCE))
        cut = dice.randrange(1, len(at))
        at, nonce = (at[:cut], at[cut:] + nonce) if dice.random() < 0.5 else (at + nonce[:1], nonce[1:])
        return _with(call, {AT: at, NONCE: nonce})

    def challenge(call: Call, dice: random.Random) -> Call:
        asked = {"type": "url_verification", "token": VERIFICATION, "challenge": "x"}
        body = dice.choice((json.dumps(asked).encode(), sealed(asked, "a guess", dice.randbytes(16))))
        return _with(call, {}, body) if dice.random() < 0.5 else Call(body, ())

    def other(call: Call, dice: random.Random) -> Call:
        name = dice.choice((AT, NONCE, LARK_PROOF))
        real = dict(call.headers)[name]
        return _with(call, {name: dice.choice((real[:-1], f"{real}0", f"+{real}", "", dice.randbytes(32).hex()))})

    return {
        "a key of one's own": lambda call, dice: (by_another(call, dice), 0.0),
        "a spoiled body": lambda call, dice: (_with(call, {}, spoiled(call, dice)), 0.0),
        "a spoiled body, not signed": lambda call, dice: (Call(spoiled(call, dice), ()), 0.0),
        "no signature": lambda call, _dice: (Call(call.body, ()), 0.0),
        "another header": lambda call, dice: (other(call, dice), 0.0),
        "moved": lambda call, dice: (moved(call, dice), 0.0),
        "a challenge": lambda call, dice: (challenge(call, dice), 0.0),
        "two signatures": lambda call, _dice: (Call(call.body, (*call.headers, *call.headers)), 0.0),
        "a space more": lambda call, _dice: (_with(call, {}, call.body + b" "), 0.0),
        "again": lambda call, _dice: (call, 0.0),
        "again, later": lambda call, dice: (call, dice.uniform(0.0, 30 * 86400)),
    }


async def run(folder: Path, count: int, seed: int, bug: Bug = Bug.NONE) -> Found:
    """Send genuine calls once, then so many forged and replayed ones, with a new start in between now and then."""
    with planted(*bug.patches):
        return await _run(folder, count, random.Random(seed))


async def _run(folder: Path, count: int, dice: random.Random) -> Found:
    platforms = [
        ("http", _http_calls(dice), list(_http_forgeries().items())),
        ("telegram", _telegram_calls(), list(_telegram_forgeries().items())),
        ("slack", _slack_calls(dice), list(_slack_forgeries().items())),
        ("feishu", _feishu_calls(dice), list(_feishu_forgeries().items())),
        ("whatsapp", _whatsapp_calls(), list(_whatsapp_forgeries().items())),
    ]
    answers: Counter[str] = Counter()
    wrong: list[str] = []
    lives = 4
    for life in range(lives):
        driver = await Sqlite.open(folder / "segue.db", running=RunsIn.INLINE)
        house = _House(driver)
        if life == 0:
            for name, calls, _ in platforms:
                for call in calls:
                    answers[f"{name} {await _post(getattr(house, name), call)}"] += 1
            if house.accepted != {Accepted.NEW: len(platforms) * GENUINE}:
                wrong.append(f"what was genuine wasn't taken in: {house.accepted}")
            house.accepted.clear()
        for _ in range(count // lives):
            name, calls, forgeries = dice.choice(platforms)
            what, forge = dice.choice(forgeries)
            call, later = forge(dice.choice(calls), dice)
            house.now = _NOW + later
            status = await _post(getattr(house, name), call)
            answers[f"{name} {status}"] += 1
            if house.accepted[Accepted.NEW] or house.accepted[Accepted.DEAD]:
                wrong.append(f"{name}: {what}: taken in, and answered {status}")
                house.accepted.clear()
            if status != 401 and not what.startswith("again"):
                wrong.append(f"{name}: {what}: answered {status}")
        await driver.close()
    return Found(dict(answers), wrong)


async def _post(app: Any, call: Call) -> int:
    """Call a webhook; a header may come twice."""
    status = 0
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in call.headers]
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": call.body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)

    await app(scope, receive, send)
    return status


async def over_the_socket(where: str, count: int, seed: int) -> Found:
    """The same for a real gateway behind a real socket, killed and started anew in the middle."""
    dice = random.Random(seed)
    town = Town(2, seed)
    answers: Counter[str] = Counter()
    wrong: list[str] = []
    forgeries = [forge for what, forge in _http_forgeries().items() if what != "again, later"]
    async with town.platform():
        plan = Plan(where, town.port, town.callback)
        genuine: list[Call] = []
        for life in range(2):
            gateway = await asyncio.to_thread(start, plan)
            try:
                async with asyncio.timeout(120), http_client(timeout=30.0) as client:
                    await town.ready()
                    if not life:
                        genuine = [await _said(town, client, n) for n in range(4)]
                        await town.gets("chat-0", 4)
                    for _ in range(count // 2):
                        call, _ = dice.choice(forgeries)(dice.choice(genuine), dice)
                        answers[str((await _send(town, client, call)).status_code)] += 1
                    await _say(town, client, f"chat-1-message-{life}")
                    await town.gets("chat-1", life + 1)
            finally:
                await asyncio.to_thread(kill, gateway)
        if len(town.texts("chat-0")) != 4:
            wrong.append(f"chat-0 got {town.texts('chat-0')}")
    if set(answers) != {"200", "401"}:
        wrong.append(f"answered {answers}")
    return Found(dict(answers), wrong)


async def _said(town: Town, client: httpx2.AsyncClient, n: int) -> Call:
    """A genuine call, answered."""
    body = town._body("chat-0", f"chat-0-message-{n}", text=f"words {n}")
    call = Call(body, tuple(signed(SECRET, body, time.time()).items()))
    assert (await _send(town, client, call)).status_code == 202
    await town.gets("chat-0", n + 1)
    return call


async def _say(town: Town, client: httpx2.AsyncClient, message: str) -> None:
    """Something genuine after all the rest: when it is answered, whatever came before would have been."""
    body = town._body("chat-1", message)
    call = Call(body, tuple(signed(SECRET, body, time.time()).items()))
    assert (await _send(town, client, call)).status_code == 202


async def _send(town: Town, client: httpx2.AsyncClient, call: Call) -> httpx2.Response:
    url = f"http://127.0.0.1:{town.port}/in/http/{ACCOUNT}"
    return await client.post(url, content=call.body, headers=list(call.headers))
