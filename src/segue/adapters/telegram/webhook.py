"""The door that Telegram knocks at: an update comes in with the secret, and is acknowledged once it is durable."""

import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from segue.adapters.shared.webhooks import door, posted, prove
from segue.core.values import Secret

HEADER = "X-Telegram-Bot-Api-Secret-Token"


def secret_of(token: Secret, account: str) -> str:
    """What Telegram shows with each update: made of the token, so that no second secret has to be kept."""
    return hmac.new(token.reveal().encode(), f"webhook/{account}".encode(), hashlib.sha256).hexdigest()


def webhook(secret: str, take: Callable[[Any], Awaitable[None]]) -> ASGIApp:
    """An ASGI application for one account."""

    async def answer(request: Request) -> Response:
        prove(request, HEADER, secret)
        # Once it shows the secret it is Telegram's: what isn't JSON is kept as it came, and not sent again.
        await take(_json(await posted(request)))
        return Response()

    return door(answer)


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode(errors="backslashreplace")
