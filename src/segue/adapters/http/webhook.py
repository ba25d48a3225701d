"""The door that the platform knocks at: a signed body comes in, and is acknowledged once it is durable."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from segue.adapters.http.incoming import read
from segue.adapters.http.signature import SIGNATURE, TIMESTAMP, Unsigned, verify
from segue.core.contracts.adapters import Accept, Accepted, Files
from segue.core.contracts.database import Clock
from segue.core.messages import File
from segue.core.values import Moment, Secret
from segue.errors import Invalid, StoreError

LARGEST = 1024 * 1024
"""Bytes of a body."""
SLOWEST = 20.0
"""Seconds that a body may take to come."""
FILE = "file"
"""The part of an address that names a file."""
RETRY_AFTER = 1
"""Seconds after which a platform should try again what couldn't be made durable."""


class Webhook:
    """An ASGI application for one account."""

    def __init__(
        self, account: str, secret: Secret, accept: Accept, files: Files, clock: Clock, slowest: float = SLOWEST
    ) -> None:
        self._slowest = slowest
        self._files = files
        self._account = account
        self._secret = secret
        self._accept = accept
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except ClientDisconnect:
            return  # Nobody is there to be answered, and nothing was accepted.
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        try:
            return await (self._give(request) if request.method == "GET" else self._take(request))
        except HTTPException as error:
            return _refusal(error.status_code, error.headers, problem=error.detail)
        except Unsigned as error:
            return _refusal(401, problem=str(error))
        except Invalid as error:
            return _refusal(422, field=error.field, problem=error.problem, fix=error.fix)
        except StoreError:
            # What the database said is for the host's log, which the gateway writes.
            problem = "It couldn't be made durable. Send it again."
            return _refusal(503, {"Retry-After": str(RETRY_AFTER)}, problem=problem)

    async def _take(self, request: Request) -> Response:
        if request.method != "POST":
            raise HTTPException(405, "Send a POST, or GET a file.", {"Allow": "GET, POST"})
        body, now = await _body(request, self._slowest), self._clock()
        self._prove(request, body, now)
        if await self._accept(read(body, self._account, now)) is Accepted.DUPLICATE:
            return JSONResponse({"accepted": False, "duplicate": True}, 200)
        return JSONResponse({"accepted": True}, 202)

    async def _give(self, request: Request) -> Response:
        """A file that a message named: what is signed is the address as the message had it, in place of a body."""
        self._prove(request, f"{request.url.path}?{request.url.query}".encode(), self._clock())
        file = File("file", "", request.query_params.get(FILE, ""))
        try:
            return Response(await self._files.read(file), media_type="application/octet-stream")
        except Invalid as error:
            raise HTTPException(404, "There is no such file.") from error

    def _prove(self, request: Request, signed: bytes, now: Moment) -> None:
        headers = request.headers
        verify(self._secret, signed, headers.getlist(TIMESTAMP), headers.getlist(SIGNATURE), now)


async def _body(request: Request, slowest: float) -> bytes:
    """The raw body, as long as it is neither too large nor too slow."""
    body = bytearray()
    try:
        async with asyncio.timeout(slowest):
            async for piece in request.stream():
                body += piece
                if len(body) > LARGEST:
                    raise HTTPException(413, f"The body has more than {LARGEST} bytes.")
    except TimeoutError as error:
        raise HTTPException(408, f"The body took longer than {slowest:g} seconds.") from error
    return bytes(body)


def _refusal(status: int, headers: Mapping[str, str] | None = None, **why: str) -> JSONResponse:
    return JSONResponse({"accepted": False, **why}, status, headers)
