"""The door that the platform knocks at: a signed body comes in, and is acknowledged once it is durable."""

from base64 import b64decode
from collections.abc import AsyncIterator
from functools import partial

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from segue.adapters.http.incoming import SentFile, read
from segue.adapters.http.signature import SIGNATURE, TIMESTAMP, Signing, Unsigned
from segue.adapters.shared.account import Account
from segue.adapters.shared.downloads import Limits, NotFetched, fetching
from segue.adapters.shared.webhooks import SLOWEST, door, posted, refusal
from segue.core.contracts.adapters import Accept, Accepted, Files, Unfetched
from segue.core.contracts.database import Clock
from segue.core.messages import Arrival, File
from segue.core.values import Moment, Secret
from segue.errors import Invalid

LIMIT_PAUSE = 60
"""Seconds after which a message that was over a limit may be taken."""
FILE, PROOF = "file", "proof"
"""The parts of an address that name a file, and prove that it was offered."""


class Webhook:
    """An ASGI application for one account."""

    def __init__(
        self,
        account: str,
        secret: Secret | Signing,
        accept: Accept,
        files: Files,
        clock: Clock,
        slowest: float = SLOWEST,
        trusted: str = "",
    ) -> None:
        self._slowest = slowest
        self._limits = Limits(trusted=trusted)
        self._files = files
        self._account = Account("http", account)
        self._signing = Signing.of(secret, account)
        self._accept = accept
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await door(self._answer)(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        try:
            return await (self._give(request) if request.method == "GET" else self._take(request))
        except Unsigned as error:
            return refusal(401, problem=str(error))
        except Invalid as error:
            return refusal(422, field=error.field, problem=error.problem, fix=error.fix)

    async def _take(self, request: Request) -> Response:
        body, now = await posted(request, slowest=self._slowest), self._clock()
        self._prove(request, body, now)
        arrival, files = read(body, self._account, now)
        match await self._accept(Unfetched(arrival, partial(self._fetch, arrival, files)) if files else arrival):
            case Accepted.DUPLICATE:
                return JSONResponse({"accepted": False, "duplicate": True}, 200)
            case Accepted.LIMITED:
                return refusal(429, {"Retry-After": str(LIMIT_PAUSE)}, problem="Its person has as much as they may.")
            case _:
                return JSONResponse({"accepted": True}, 202)

    async def _fetch(self, arrival: Arrival, files: tuple[SentFile, ...]) -> Arrival:
        return arrival.with_files([await self._keep(f"files[{n}]", file) for n, file in enumerate(files)])

    async def _keep(self, field: str, file: SentFile) -> File:
        try:
            if file.data:
                return await self._files.keep(file.name, file.media, _decoded(f"{field}.data", file.data))
            async with fetching(file.url, self._limits) as chunks:
                return await self._files.keep(file.name, file.media, chunks)
        except NotFetched as error:
            raise Invalid(f"{field}.url", str(error), "Send the file as data, or leave it out.") from error

    async def _give(self, request: Request) -> Response:
        """A file that a message named: what is signed is the address as the message had it, in place of a body."""
        self._prove(request, f"{request.url.path}?{request.url.query}".encode(), self._clock())
        file = File("file", "", request.query_params.get(FILE, ""))
        if not self._signing.offered(file.where, request.query_params.get(PROOF, "")):
            # Another account's file reads the same as none.
            raise HTTPException(404, "There is no such file.")
        content = self._files.stream(file)
        try:
            first = await anext(content, b"")
        except Invalid as error:
            raise HTTPException(404, "There is no such file.") from error
        return StreamingResponse(_all(first, content), media_type="application/octet-stream")

    def _prove(self, request: Request, signed: bytes, now: Moment) -> None:
        headers = request.headers
        self._signing.verify(signed, headers.getlist(TIMESTAMP), headers.getlist(SIGNATURE), now)


async def _all(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in rest:
        yield piece


async def _decoded(field: str, data: str) -> AsyncIterator[bytes]:
    try:
        yield b64decode(data, validate=True)
    except ValueError as error:
        raise Invalid(field, "it isn't base64", "Encode the whole file.") from error
