"""Whoever forges calls to webhooks: for each proof that an adapter asks for, genuine calls, and what is made of them.

Whoever forges has seen genuine calls and knows everything but the secrets.
"""

import hashlib
import hmac
import json
import random
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, get_args
from urllib.parse import quote, urlencode

from segue.adapters.feishu.adapter import AT, NONCE, FeishuByEvents
from segue.adapters.feishu.adapter import PROOF as LARK_PROOF
from segue.adapters.feishu.api import Api as FeishuApi
from segue.adapters.http import Http
from segue.adapters.http.signature import SIGNATURE, TIMESTAMP, Signing, Version
from segue.adapters.slack.adapter import SlackByEvents, signature
from segue.adapters.slack.api import Api
from segue.adapters.telegram.adapter import HEADER, TelegramByWebhook, secret_of
from segue.adapters.telegram.updates import Peer
from segue.adapters.whatsapp.adapter import PROOF, WhatsApp
from segue.adapters.whatsapp.adapter import signature as whatsapp_signature
from segue.adapters.whatsapp.graph import Graph
from segue.core.contracts.adapters import Accept, TakesWebhooks
from segue.core.contracts.database import Clock
from segue.core.values import Live, Secret, Value
from segue.testing import Shelf
from tests.adapters.platform import signed
from tests.servers.feishu import KEY, sealed
from tests.servers.feishu import TOKEN as VERIFICATION
from tests.servers.feishu import signed as feishu_signed
from tests.servers.whatsapp import NUMBER, change

GENUINE = 40
"""Messages that really come, for each proof."""
NOW = 1_700_000_000.0
_WINDOW = 300
_KNOWN = "http secret"
_TOKEN = Secret("123:telegram token")
_SLACK = "slack secret"
_WHATSAPP = "whatsapp secret"
_WORD = "whatsapp word"
_SLACK_PROOF, _SLACK_TIME = "X-Slack-Signature", "X-Slack-Request-Timestamp"


class Call(Value, frozen=True):
    """A call to a webhook."""

    body: bytes
    headers: tuple[tuple[str, str], ...]
    query: str = ""
    """What a GET asks for; a POST has none."""


Forge = Callable[[Call, random.Random], tuple[Call, float]]
"""Given a genuine call, a forged or replayed one, and how many seconds later it is made."""


class Forger(Live, frozen=True):
    """Whoever forges one proof: the adapter that asks for it, genuine calls, and what is made of them by name."""

    adapter: type[TakesWebhooks]
    door: Callable[[Accept, Clock], Callable[..., Awaitable[None]]]
    """A webhook as it is after a start."""
    genuine: Callable[[random.Random], list[Call]]
    forgeries: dict[str, Forge]
    taken: int = GENUINE
    """Messages that the genuine calls bring."""


def _http_signed(
    version: Version, secret: str, body: bytes, at: float, way: str = "in", account: str = ""
) -> dict[str, str]:
    if version == "v1":
        return signed(secret, body, at)
    named = f"v2.{way}.{account or version}.{int(at)}.".encode()
    digest = hmac.new(secret.encode(), named + body, hashlib.sha256).hexdigest()
    return {TIMESTAMP: str(int(at)), SIGNATURE: f"v2={digest}"}


def _http_calls(version: Version, dice: random.Random) -> list[Call]:
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
        calls.append(Call(body, tuple(_http_signed(version, _KNOWN, body, NOW - dice.randrange(_WINDOW)).items())))
    return calls


def _telegram_calls(_dice: random.Random) -> list[Call]:
    calls = []
    for n in range(GENUINE):
        person = {"id": 500 + n % 4, "is_bot": False, "first_name": "Ann"}
        chat = {"id": 500 + n % 4, "type": "private", "first_name": "Ann"}
        message = {"message_id": n + 1, "date": int(NOW), "chat": chat, "from": person, "text": f"words {n}"}
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
        calls.append(Call(body, tuple(_slack_signed(_SLACK, body, NOW - dice.randrange(_WINDOW)).items())))
    return calls


def _whatsapp_calls(_dice: random.Random) -> list[Call]:
    calls = []
    for n in range(GENUINE):
        said = {
            "id": f"wamid.{n}",
            "from": f"49151{n % 4}",
            "timestamp": str(int(NOW)),
            "text": {"body": f"words {n}"},
        }
        body = json.dumps(change(messages=[{**said, "type": "text"}])).encode()
        calls.append(Call(body, ((PROOF, whatsapp_signature(Secret(_WHATSAPP), body)),)))
    return calls


def _whatsapp_handshake(_dice: random.Random) -> list[Call]:
    return [Call(b"", (), f"hub.mode=subscribe&hub.verify_token={quote(_WORD)}&hub.challenge=1158201444")]


def _feishu_event(n: int, text: str) -> dict[str, Any]:
    said = {"message_id": f"om_{n}", "chat_id": f"oc_{n % 4}", "chat_type": "p2p", "message_type": "text"}
    said |= {"content": json.dumps({"text": text}), "create_time": str(int(NOW * 1000))}
    sender = {"sender_id": {"open_id": f"ou_{n % 4}"}, "sender_type": "user"}
    header = {"event_id": f"event {n}", "event_type": "im.message.receive_v1", "token": VERIFICATION}
    return {"schema": "2.0", "header": header, "event": {"sender": sender, "message": said}}


def _feishu_calls(dice: random.Random) -> list[Call]:
    bodies = [sealed(_feishu_event(n, f"words {n}"), iv=dice.randbytes(16)) for n in range(GENUINE)]
    at = [NOW - dice.randrange(_WINDOW) for _ in bodies]
    nonces = [f"{dice.randrange(10)}{dice.randbytes(8).hex()}" for _ in bodies]
    proofs = [feishu_signed(*each) for each in zip(bodies, [KEY] * GENUINE, at, nonces, strict=True)]
    return [Call(body, tuple(proof.items())) for body, proof in zip(bodies, proofs, strict=True)]


def _feishu_handshake(dice: random.Random) -> list[Call]:
    asked = {"type": "url_verification", "token": VERIFICATION, "challenge": "x"}
    return [Call(sealed(asked, iv=dice.randbytes(16)), ()) for _ in range(GENUINE)]


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


def http_forgeries(version: Version) -> dict[str, Forge]:
    """What is made of calls that are signed as in a version."""
    forgeries = _signed_forgeries(SIGNATURE, TIMESTAMP, version, partial(_http_signed, version))
    if version == "v1":
        return forgeries

    def elsewhere(call: Call, dice: random.Random, **more: str) -> Call:
        """What the same secret signed, for somebody else."""
        body = _words(call, dice)
        return _with(call, _http_signed(version, _KNOWN, body, NOW, **more), body)

    return forgeries | {
        "what we sent": lambda call, dice: (elsewhere(call, dice, way="out"), 0.0),
        "for another account": lambda call, dice: (elsewhere(call, dice, account="another"), 0.0),
        "an old signature": lambda call, dice: (
            _with(call, signed(_KNOWN, body := _words(call, dice), NOW), body),
            0.0,
        ),
    }


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
        return dice.choice([str(int(NOW) + dice.randrange(1, 300)), f"+{real}", f"{real}.0", f"0{real}", "", "now"])

    def by_another(call: Call, dice: random.Random) -> Call:
        body = _words(call, dice)
        return _with(call, sign(f"guess {dice.random()}", body, NOW), body)

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


def _whatsapp_handshakes() -> dict[str, Forge]:
    def asking(word: str, mode: str = "subscribe") -> tuple[Call, float]:
        return Call(b"", (), urlencode({"hub.mode": mode, "hub.verify_token": word, "hub.challenge": "1"})), 0.0

    def other_word(_call: Call, dice: random.Random) -> tuple[Call, float]:
        guesses = (
            _WORD[:-1],
            f"{_WORD} ",
            _WORD.upper(),
            "",
            _WHATSAPP,
            f"guess {dice.random()}",
            dice.randbytes(9).hex(),
        )
        return asking(dice.choice(guesses))

    return {
        "another word": other_word,
        "two words, the first one right": lambda call, dice: (
            Call(b"", (), f"{call.query}&hub.verify_token=guess{dice.random()}"),
            0.0,
        ),
        "no word": lambda _call, _dice: (Call(b"", (), "hub.mode=subscribe&hub.challenge=1"), 0.0),
        "another mode": lambda _call, dice: asking(_WORD, dice.choice(("", "unsubscribe", "SUBSCRIBE"))),
    }


def _spoiled(call: Call, dice: random.Random) -> bytes:
    raw = bytearray(b64decode(json.loads(call.body)["encrypt"]))
    raw[dice.randrange(len(raw))] ^= 1 << dice.randrange(8)
    cut = dice.choice((len(raw), len(raw), len(raw) - 16, 32, 16, 7, 0))
    return json.dumps({"encrypt": b64encode(raw[:cut]).decode()}).encode()


def _feishu_handshakes() -> dict[str, Forge]:
    """Whoever forges knows the verification token; not the key."""

    def asked(dice: random.Random, token: str = VERIFICATION) -> dict[str, str]:
        return {"type": "url_verification", "token": token, "challenge": f"{dice.random()}"}

    def by_another(dice: random.Random) -> Call:
        guess = dice.choice(("", "a guess", KEY[:-1], KEY.upper(), f"guess {dice.random()}"))
        return Call(sealed(asked(dice), guess, dice.randbytes(16)), ())

    def with_another(dice: random.Random) -> Call:
        token = dice.choice(("", VERIFICATION[:-1], f"{VERIFICATION}0", f"guess {dice.random()}"))
        return Call(sealed(asked(dice, token), iv=dice.randbytes(16)), ())

    return {
        "a key of one's own": lambda _call, dice: (by_another(dice), 0.0),
        "another token": lambda _call, dice: (with_another(dice), 0.0),
        "not sealed": lambda _call, dice: (Call(json.dumps(asked(dice)).encode(), ()), 0.0),
        "an event": lambda _call, dice: (Call(sealed(_feishu_event(dice.randrange(GENUINE), "x")), ()), 0.0),
    }


def _feishu_forgeries() -> dict[str, Forge]:
    """Whoever forges has seen sealed bodies, and knows the verification token; not the key."""

    def by_another(call: Call, dice: random.Random) -> Call:
        guess = f"guess {dice.random()}"
        body = sealed(_feishu_event(dice.randrange(10**6, 10**9), "forged"), guess, dice.randbytes(16))
        return _with(call, feishu_signed(body, guess, NOW) if dice.random() < 0.5 else {}, body)

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
        "a spoiled body": lambda call, dice: (_with(call, {}, _spoiled(call, dice)), 0.0),
        "a spoiled body, not signed": lambda call, dice: (Call(_spoiled(call, dice), ()), 0.0),
        "no signature": lambda call, _dice: (Call(call.body, ()), 0.0),
        "another header": lambda call, dice: (other(call, dice), 0.0),
        "moved": lambda call, dice: (moved(call, dice), 0.0),
        "a challenge": lambda call, dice: (challenge(call, dice), 0.0),
        "two signatures": lambda call, _dice: (Call(call.body, (*call.headers, *call.headers)), 0.0),
        "a space more": lambda call, _dice: (_with(call, {}, call.body + b" "), 0.0),
        "again": lambda call, _dice: (call, 0.0),
        "again, later": lambda call, dice: (call, dice.uniform(0.0, 30 * 86400)),
    }


def _http(version: Version, accept: Accept, clock: Clock) -> Callable[..., Awaitable[None]]:
    signing = Signing((Secret(_KNOWN),), version, (version,))
    return Http(version, signing, "http://127.0.0.1:1", Shelf(), clock).webhook(accept)


def _telegram(accept: Accept, clock: Clock) -> Callable[..., Awaitable[None]]:
    bot = TelegramByWebhook("bot", _TOKEN, Shelf(), webhook="https://segue.invalid", clock=clock)
    bot._me = Peer(7, username="bot")
    return bot.webhook(accept)


def _slack(accept: Accept, clock: Clock) -> Callable[..., Awaitable[None]]:
    # Nobody is there, as nobody is for Feishu: names can't be had, and nobody waits for them.
    app = SlackByEvents("bot", Api(Secret("xoxb-1"), "http://127.0.0.1:1/api"), Secret(_SLACK), Shelf(), clock=clock)
    app._api._me = "U0BOT"
    return app.webhook(accept)


def _whatsapp(accept: Accept, clock: Clock) -> Callable[..., Awaitable[None]]:
    graph = Graph(Secret("token"), NUMBER, "http://127.0.0.1:1")
    secret, word = Secret(_WHATSAPP), Secret(_WORD)
    return WhatsApp("main", graph, Shelf(), app_secret=secret, verify_token=word, clock=clock).webhook(accept)


def _feishu(accept: Accept, clock: Clock) -> Callable[..., Awaitable[None]]:
    api, token, key = FeishuApi("cli_1", Secret("secret"), "http://127.0.0.1:1"), Secret(VERIFICATION), Secret(KEY)
    api._me = "ou_bot"
    return FeishuByEvents("main", api, token, key, Shelf(), clock=clock).webhook(accept)


FORGERS = {
    **{
        f"http {v}": Forger(Http, partial(_http, v), partial(_http_calls, v), http_forgeries(v))
        for v in get_args(Version)
    },
    "telegram": Forger(TelegramByWebhook, _telegram, _telegram_calls, _telegram_forgeries()),
    "slack": Forger(SlackByEvents, _slack, _slack_calls, _slack_forgeries()),
    "whatsapp": Forger(WhatsApp, _whatsapp, _whatsapp_calls, _whatsapp_forgeries()),
    "whatsapp handshake": Forger(WhatsApp, _whatsapp, _whatsapp_handshake, _whatsapp_handshakes(), taken=0),
    "feishu": Forger(FeishuByEvents, _feishu, _feishu_calls, _feishu_forgeries()),
    "feishu handshake": Forger(FeishuByEvents, _feishu, _feishu_handshake, _feishu_handshakes(), taken=0),
}
"""By the proof."""
