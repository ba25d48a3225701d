"""An app that Feishu makes for whoever scans a code: the device flow of OAuth, which gives its id and its secret."""

import asyncio
from collections.abc import Callable
from enum import StrEnum
from typing import Any
from urllib.parse import urlencode

from segue.adapters.shared.outcomes import calling
from segue.adapters.shared.web import Web
from segue.core.values import Secret, Value
from segue.errors import Disconnected, Invalid

_PATH = "/oauth/v1/app/registration"
_ASKS = {"archetype": "PersonalAgent", "auth_method": "client_secret", "request_user_info": "open_id"}
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_NAMED = {"from": "sdk", "tp": "sdk", "source": "segue", "name": "Segue"}
_EVERY, _SLOWER = 5.0, 5.0
"""Seconds between two looks, unless Feishu says otherwise; and by how much longer when it asks for that."""


class Domain(StrEnum):
    """The house that an app belongs to."""

    FEISHU = "feishu"
    """Feishu, in China."""
    LARK = "lark"
    """Lark, elsewhere."""


ACCOUNTS = {Domain.FEISHU: "https://accounts.feishu.cn", Domain.LARK: "https://accounts.larksuite.com"}


class Registered(Value, frozen=True):
    """An app that was made."""

    app: str
    secret: Secret
    domain: Domain


async def register(show: Callable[[str], None], accounts: dict[Domain, str], slower: float = _SLOWER) -> Registered:
    """Show a code, and wait until somebody has scanned it and the app is made; people of Lark are asked there."""
    begun = await _ask(accounts[Domain.FEISHU], "begin", **_ASKS)
    link, code = str(begun.get("verification_uri_complete") or ""), str(begun.get("device_code") or "")
    if not link or not code:
        raise Disconnected("Feishu makes no app by a code now. Make one by hand: docs/feishu.md says how.")
    show(f"{link}{'&' if '?' in link else '?'}{urlencode(_NAMED)}")
    every, domain = _number(begun.get("interval"), _EVERY), Domain.FEISHU
    while True:
        await asyncio.sleep(every)
        told = await _ask(accounts[domain], "poll", device_code=code)
        if told.get("client_id") and told.get("client_secret"):
            return Registered(str(told["client_id"]), Secret(str(told["client_secret"])), domain)
        user = told.get("user_info")
        if isinstance(user, dict) and user.get("tenant_brand") == Domain.LARK:
            domain = Domain.LARK
            continue
        match told.get("error"):
            case "authorization_pending":
                """Nobody has scanned it yet."""
            case "slow_down":
                every += slower
            case error:
                why = str(told.get("error_description") or error or "it didn't say why")
                raise Invalid("app_id", f"Feishu made no app: {why}", "Run it again, or give an app's id and secret.")


async def _ask(base: str, action: str, **fields: str) -> dict[str, Any]:
    body = urlencode({"action": action, **fields}).encode()
    async with calling(Web("Feishu", base)) as web:
        told = web.told(await web.call("POST", _PATH, body, _FORM))
    return told if isinstance(told, dict) else {}


def _number(value: object, otherwise: float) -> float:
    return float(value) if isinstance(value, int | float) and value > 0 else otherwise
