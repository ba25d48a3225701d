"""The door that Telegram knocks at: an update comes in with the secret, and is acknowledged once it is durable."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from segue.core.values import Secret
from segue.errors import Disconnected, StoreError

HEADER = "X-Telegram-Bot-Api-Secret-Token"
LARGEST = 1024 * 1024
"""Bytes of an update."""
SLOWEST = 20.0


def secret_of(token: Secret, account: str) -> str:
    """What Telegram shows with each update: made of the token, so that no second secret has to be kept."""
    return hmac.new(token.reveal().encode(), f"webhook/{account}".encode(), hashlib.sha256).hexdigest()


class Webhook:
    """An ASGI application for one account."""

    def __init__(self, secret: str, take: Callable[[Any], Awaitable[None]]) -> None:
        self._secret = secret
        self._take = take

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            status = await self._status(Request(scope, receive))
        except ClientDisconnect:
            return  # Nobody is there to be answered, and nothing was accepted.
        await Response(status_code=status)(scope, receive, send)

    async def _status(self, request: Request) -> int:
        shown = request.headers.getlist(HEADER)
        if len(shown) != 1 or not hmac.compare_digest(shown[0].encode(), self._secret.encode()):
            return 401
        if request.method != "POST":
            return 405
        body = bytearray()
        try:
            async with asyncio.timeout(SLOWEST):
                async for piece in request.stream():
                    body += piece
                    if len(body) > LARGEST:
                        return 413
        except TimeoutError:
            return 408
        try:
            # Once it shows the secret it is Telegram's: what isn't JSON is kept as it came, and not sent again.
            await self._take(_json(bytes(body)))
        except (StoreError, Disconnected):
            return 503
        return 200


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode(errors="backslashreplace")
