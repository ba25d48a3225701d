"""The one HTTP server: webhooks of the adapters, health and metrics.

Law: a stranger learns that the gateway is well or that it isn't, and nothing else.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from segue.core.accounts import Health
from segue.runtime.server.callers import CallerLimits, vouch
from segue.runtime.server.proxies import Forwarded, Proxies
from segue.runtime.telemetry.metrics import Metrics

log = logging.getLogger(__name__)


class Served(Protocol):
    """The facts about a gateway that the server shows."""

    @property
    def ready(self) -> bool:
        """Whether it takes messages in."""
        ...

    @property
    def metrics(self) -> Metrics:
        """Its counters."""
        ...

    @property
    def largest_bodies(self) -> Mapping[str, int]:
        """Bytes of a body at paths that take more than others."""
        ...

    def audit_unproven(self, path: str, calls: int) -> None:
        """Have calls that prove nothing written to the audit."""
        ...

    def webhooks(self) -> Sequence[tuple[str, Callable[..., Awaitable[None]]]]:
        """Each adapter's own application, and the path that it is called at."""
        ...

    @property
    def accounts(self) -> Mapping[str, Health]:
        """The health of each account, by its name."""
        ...

    def problems(self) -> list[str]:
        """Why it isn't well; empty if it is."""
        ...

    @property
    def dead_letters(self) -> int:
        """Messages that couldn't be taken in or sent, counted lately."""
        ...


class Mounted:
    """An ASGI application at exactly one path: a callable object, so that a route passes every method on to it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        await self._app(scope, receive, send)


class Webhooks(Mounted):
    """An adapter's application: a caller whose call it took has proved who they are."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] < _REFUSED:
                vouch(scope)
            await send(message)

        await super().__call__(scope, receive, noting)


def is_local(request: Request) -> bool:
    """Whether a call comes over the socket in the data folder, which only its user can open."""
    _, port = request.scope["server"] or ("", 0)
    return port is None


def make_app(
    gateway: Served,
    hosts: Iterable[str] = (),
    windows: Sequence[BaseRoute] = (),
    knows: Callable[[Request], bool] = is_local,
    proxies: Proxies | None = None,
) -> Starlette:
    """Everything that a gateway serves, under the local names and those given.

    Whoever calls learns whether it is well; why it isn't, and its figures, only who `knows` says may.
    """

    async def healthz(request: Request) -> Response:
        problems = gateway.problems()
        if not knows(request):
            return PlainTextResponse("unwell" if problems else "well", 503 if problems else 200)
        accounts = msgspec.to_builtins(gateway.accounts)
        told = {"healthy": not problems, "problems": problems, "accounts": accounts, "letters": gateway.dead_letters}
        return JSONResponse(told, 503 if problems else 200)

    async def readyz(_request: Request) -> Response:
        return JSONResponse({"ready": gateway.ready}, 200 if gateway.ready else 503)

    async def metrics(request: Request) -> Response:
        if not knows(request):
            fix = "Show the token of status_token under [server], or ask over the socket in the data folder.\n"
            return PlainTextResponse(fix, 401, {"WWW-Authenticate": "Bearer"})
        return Response(gateway.metrics.text(), media_type=Metrics.MEDIA_TYPE)

    routes: list[BaseRoute] = [
        *windows,
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        Route("/metrics", metrics),
    ]
    routes += [Route(path, Webhooks(app)) for path, app in gateway.webhooks()]
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(Unproven, gateway=gateway),
            Middleware(Forwarded, proxies=proxies or Proxies(), most=CallerLimits().address),
            Middleware(Hosts, allowed=[*LOCAL, *hosts]),
            Middleware(Bodies, largest={**_LARGEST, **gateway.largest_bodies}),
        ],
    )


class Unproven:
    """Counts calls to webhooks and /link that don't prove who makes them; once a minute they are logged and audited."""

    def __init__(self, app: ASGIApp, gateway: Served) -> None:
        self._app = app
        self._gateway = gateway
        self._since: dict[str, tuple[float, int]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in _UNPROVEN:
                self._note(scope["path"])
            await send(message)

        guarded = scope["type"] == "http" and (scope["path"].startswith("/in/") or scope["path"] == "/link")
        await self._app(scope, receive, noting if guarded else send)

    def _note(self, path: str) -> None:
        self._gateway.metrics.unproven(path)
        logged, count = self._since.get(path, (-_MINUTE, 0))
        if time.monotonic() < logged + _MINUTE:
            self._since[path] = logged, count + 1
            return
        log.warning("a call to %s had no valid signature, secret or token; %d more since the last line", path, count)
        self._gateway.audit_unproven(path, count + 1)
        self._since[path] = time.monotonic(), 0


_UNPROVEN = {401, 403}
_MINUTE = 60.0
LARGEST_BODY = 1024 * 1024
"""Bytes of a body, at every path that says nothing else."""
_SMALL, _TOGETHER = 64 * 1024, 64 * LARGEST_BODY
"""Bytes of each body that are read in any case, and of all that is beyond that together."""
_FORM = 4096
_REFUSED = 300
"""Statuses from here on tell nothing of who calls."""
_LARGEST = {"/signin": _FORM, "/signout": _FORM, "/link": _FORM, "/mcp": 4 * LARGEST_BODY}


class Bodies:
    """Refuses a body that is too large, at the latest when so much of it was read."""

    def __init__(self, app: ASGIApp, largest: Mapping[str, int]) -> None:
        self._app = app
        self._largest = largest
        self._held = 0
        """Bytes of large bodies that are being read."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        largest, read = self._largest.get(scope["path"], LARGEST_BODY), 0
        refused = f"The body has more than {largest:,} bytes.\n"
        length = Headers(scope=scope).get("content-length", "0")
        if length.isdecimal() and (len(length) > len(str(largest)) + 1 or int(length) > largest):
            await PlainTextResponse(refused, 413, {"Connection": "close"})(scope, receive, send)
            return

        async def bounded() -> Message:
            nonlocal read
            message = await receive()
            before, read = read, read + len(message.get("body", b""))
            if read > largest:
                raise HTTPException(413, refused, {"Connection": "close"})
            self._held += _beyond(read) - _beyond(before)
            if self._held > _TOGETHER and read > _SMALL:
                raise HTTPException(503, "Too many large bodies come at once.\n", {"Retry-After": "5"})
            return message

        try:
            await self._app(scope, bounded, send)
        finally:
            self._held -= _beyond(read)


def _beyond(read: int) -> int:
    """The bytes of a body that count among the large ones."""
    return max(read - _SMALL, 0)


LOCAL = ("127.0.0.1", "localhost", "[::1]")


class Hosts:
    """Passes on only what was sent to a name that the host allowed, on whichever port."""

    def __init__(self, app: ASGIApp, allowed: Iterable[str]) -> None:
        self._app = app
        self._allowed = frozenset(name.lower() for name in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        names = Headers(scope=scope).getlist("host")
        if len(names) != 1:
            refusal = PlainTextResponse("Send one Host header.\n", 400)
        elif _name(names[0]) not in self._allowed:
            refusal = PlainTextResponse("Segue doesn't answer to this name. Add it to hosts under [server].\n", 421)
        else:
            await self._app(scope, receive, send)
            return
        await refusal(scope, receive, send)


def _name(host: str) -> str:
    """A Host header without its port."""
    name, colon, port = host.rpartition(":")
    # The last colon of an IPv6 address belongs to a port only behind the bracket.
    return (name if colon and port.isdigit() else host).lower()
