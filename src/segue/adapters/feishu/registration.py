"""An app that Feishu makes for whoever scans a code: the device flow of OAuth, which gives its id and its secret."""

import asyncio
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any
from urllib.parse import urlencode

from segue.adapters.shared.outcomes import calling
from segue.adapters.shared.web import Web
from segue.errors import Disconnected, Invalid

_PATH = "/oauth/v1/app/registration"
_ASKS = {"archetype": "PersonalAgent", "auth_method": "client_secret", "request_user_info": "open_id"}
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_NAMED = {"from": "sdk", "tp": "sdk", "source": "segue", "name": "Segue"}
_EVERY, _SLOWER = 5.0, 5.0
"""Seconds between two looks, unless Feishu says otherwise; and by how much longer when it asks for that."""


class Domain(StrEnum):
    """The house that an app belongs to: Feishu in China, Lark elsewhere."""

    FEISHU = "feishu"
    LARK = "lark"

    def at(self, service: str) -> str:
        return f"https://{service}.{'larksuite.com' if self is Domain.LARK else 'feishu.cn'}"


async def register(
    show: Callable[[str], None], accounts: Mapping[Domain, str], slower: float = _SLOWER
) -> dict[str, str]:
    """Show a code, and wait until somebody has scanned it and the app is made; people of Lark are asked there."""
    domain = Domain.FEISHU
    begun = await _ask(accounts[domain], "begin", **_ASKS)
    link, code, every = (begun.get(key) for key in ("verification_uri_complete", "device_code", "interval"))
    if not link or not code:
        raise Disconnected("Feishu makes no app by a code now. Make one by hand: docs/feishu.md says how.")
    show(f"{link}{'&' if '?' in str(link) else '?'}{urlencode(_NAMED)}")
    wait = float(every) if isinstance(every, int | float) and every > 0 else _EVERY
    while True:
        await asyncio.sleep(wait)
        told = await _ask(accounts[domain], "poll", device_code=str(code))
        match told:
            case {"client_id": str(app), "client_secret": str(secret)} if app and secret:
                return {"app_id": app, "app_secret": secret, "domain": domain}
            case {"user_info": {"tenant_brand": Domain.LARK}} if domain is Domain.FEISHU:
                domain = Domain.LARK
            case {"error": "authorization_pending"}:
                """Nobody has scanned it yet."""
            case {"error": "slow_down"}:
                wait += slower
            case _:
                why = str(told.get("error_description") or told.get("error") or "it didn't say why")
                raise Invalid("app_id", f"Feishu made no app: {why}", "Run it again, or give an app's id and secret.")


async def _ask(base: str, action: str, **fields: str) -> dict[str, Any]:
    body = urlencode({"action": action, **fields}).encode()
    async with calling(Web("Feishu", base)) as web:
        told = web.told(await web.call("POST", _PATH, body, _FORM))
    return told if isinstance(told, dict) else {}
