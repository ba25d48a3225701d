"""The door that a platform knocks at: a body within limits, a proof, and an answer only after what came is durable."""

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from segue.core.values import Moment
from segue.errors import Disconnected, StoreError

LARGEST = 1024 * 1024
"""Bytes of a body."""
SLOWEST = 20.0
"""Seconds that a body may take to come."""
RETRY_AFTER = 1
"""Seconds after which a platform should try again what couldn't be made durable."""


def door(answer: Callable[[Request], Awaitable[Response]]) -> ASGIApp:
    """An ASGI application that answers each request; what can't be made durable now is to be sent again."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await answer(Request(scope, receive))
        except ClientDisconnect:
            return  # Nobody is there to be answered, and nothing was accepted.
        except HTTPException as error:
            response = refusal(error.status_code, error.headers, problem=error.detail)
        except (StoreError, Disconnected):
            # What the database said is for the host's log, which the gateway writes.
            problem = "It couldn't be made durable. Send it again."
            response = refusal(503, {"Retry-After": str(RETRY_AFTER)}, problem=problem)
        await response(scope, receive, send)

    return app


def refusal(status: int, headers: Mapping[str, str] | None = None, **why: str) -> Response:
    """An answer that says why something wasn't taken."""
    return JSONResponse({"accepted": False, **why}, status, headers)


def prove(request: Request, header: str, secret: str) -> None:
    """Raise 401 unless a header, there once, holds the secret, or the signature that it makes; an empty one is none."""
    shown = request.headers.getlist(header)
    if not secret or len(shown) != 1 or not hmac.compare_digest(shown[0].encode(), secret.encode()):
        raise HTTPException(401, f"Send the secret in one {header}.")


def signed_at(request: Request, header: str, now: Moment, window: float) -> str:
    """The time that a header names, there once, in seconds; raises 401 if it is further away than the window."""
    shown = request.headers.getlist(header)
    if len(shown) != 1 or not shown[0].isascii() or not shown[0].isdecimal():
        raise HTTPException(401, f"Send one {header}.")
    if abs(now - int(shown[0][:20])) > window:
        raise HTTPException(401, "It was signed too long ago.")
    return shown[0]


async def posted(request: Request, largest: int = LARGEST, slowest: float = SLOWEST) -> bytes:
    """The raw body of a POST, as long as it is neither too large nor too slow."""
    if request.method != "POST":
        raise HTTPException(405, "Send a POST.", {"Allow": "POST"})
    body = bytearray()
    try:
        async with asyncio.timeout(slowest):
            async for piece in request.stream():
                body += piece
                if len(body) > largest:
                    raise HTTPException(413, f"The body has more than {largest} bytes.")
    except TimeoutError as error:
        raise HTTPException(408, f"The body took longer than {slowest:g} seconds.") from error
    return bytes(body)


async def posted_json(request: Request) -> Any:
    """The JSON in a POST, as `from_json` reads it."""
    return from_json(await posted(request))


def from_json(body: bytes | str) -> Any:
    """The JSON in something; what isn't any, as it came, so that it becomes a letter and isn't sent again."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body if isinstance(body, str) else body.decode(errors="backslashreplace")
