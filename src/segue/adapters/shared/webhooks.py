"""Webhooks: limits a body's size and time, checks its proof, and answers once the update is durable."""

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
"""The largest body, in bytes."""
SLOWEST = 20.0
"""The longest time to receive a body, in seconds."""
RETRY_AFTER = 1
"""Seconds before a platform should retry an update that couldn't be stored."""


def door(answer: Callable[[Request], Awaitable[Response]]) -> ASGIApp:
    """Return an ASGI application that answers each request.

    If an update can't be stored now, the response asks the platform to retry.
    """

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await answer(Request(scope, receive))
        except ClientDisconnect:
            return  # The platform hung up, and nothing was accepted.
        except HTTPException as error:
            response = refusal(error.status_code, error.headers, problem=error.detail)
        except (StoreError, Disconnected):
            # The gateway logs the database's error for the host.
            problem = "It couldn't be made durable. Send it again."
            response = refusal(503, {"Retry-After": str(RETRY_AFTER)}, problem=problem)
        await response(scope, receive, send)

    return app


def refusal(status: int, headers: Mapping[str, str] | None = None, **why: str) -> Response:
    """Return a response that says why a request was rejected."""
    return JSONResponse({"accepted": False, **why}, status, headers)


def prove(request: Request, header: str, secret: str) -> None:
    """Raise 401 unless exactly one header holds the secret or signature. An empty secret matches nothing."""
    shown = request.headers.getlist(header)
    if not secret or len(shown) != 1 or not hmac.compare_digest(shown[0].encode(), secret.encode()):
        raise HTTPException(401, f"Send the secret in one {header}.")


def signed_at(request: Request, header: str, now: Moment, window: float) -> str:
    """Return the time in a header, in seconds. Raise 401 without exactly one, or outside the window."""
    shown = request.headers.getlist(header)
    if len(shown) != 1 or not shown[0].isascii() or not shown[0].isdecimal():
        raise HTTPException(401, f"Send one {header}.")
    if abs(now - int(shown[0][:20])) > window:
        raise HTTPException(401, "It was signed too long ago.")
    return shown[0]


async def posted(request: Request, largest: int = LARGEST, slowest: float = SLOWEST) -> bytes:
    """Return the raw body of a POST within the limits of size and time."""
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
    """Return the JSON in a POST, as `from_json` reads it."""
    return from_json(await posted(request))


def from_json(body: bytes | str) -> Any:
    """Parse JSON.

    A body that isn't JSON is returned unchanged: it becomes a dead letter, and the platform doesn't retry it.
    """
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body if isinstance(body, str) else body.decode(errors="backslashreplace")
