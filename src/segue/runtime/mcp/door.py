"""The way in to the tools over MCP, at `/mcp`: each call with the rights of the person whose token it shows.

Law: nothing is kept between two calls, so any gateway may take any of them. Whoever shows no token that counts learns
why, and nothing else; a page of another site learns nothing. The library is loaded when somebody calls first.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from segue.changes.people.tokens import TokenScope
from segue.core.contracts.agents import Tools
from segue.core.windows import HOSTS
from segue.errors import NotInstalled, Refusal, Refused, StoreError
from segue.runtime.gateway import Gateway
from segue.runtime.server.app import Mounted
from segue.runtime.server.callers import vouch
from segue.runtime.windows.sign_in import SignIn

PATH = "/mcp"
TOOLS = "segue.tools"
"""Key of the caller's tools in the scope of a request."""
_LATER = "600"
_EXTRA = "mcp"


def installed() -> bool:
    """Whether the library is there."""
    return find_spec(_EXTRA) is not None


class McpDoor:
    """Lets those in who show a token."""

    def __init__(self, gateway: Gateway, sign_in: SignIn, url: str) -> None:
        self._gateway = gateway
        self._sign_in = sign_in
        self._tokens = gateway.tokens
        self._netloc = urlsplit(url).netloc
        gateway.programs.lent.url = f"{url}{PATH}" if installed() else ""
        self._app: asyncio.Future[ASGIApp] | None = None
        self._serving: asyncio.Task[None] | None = None

    def routes(self) -> list[BaseRoute]:
        """Its route."""
        return [Route(PATH, Mounted(self._serve))]

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Serve until the block ends."""
        try:
            yield
        finally:
            if self._serving is not None:
                self._serving.cancel()
                await asyncio.wait([self._serving])

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        origin = urlsplit(request.headers.get("origin", "")).netloc
        if origin not in ("", request.headers.get("host", ""), self._netloc):
            answer: ASGIApp = _refusal(403, "Call from a program, or from the address that Segue listens on.")
        else:
            try:
                scope[TOOLS] = await self._tools(request)
                vouch(scope)
                answer = await self._loaded()
            except Refused as refused:
                answer = _refusal(429 if refused.why is Refusal.TOO_MANY_TOKENS else 401, str(refused))
            except StoreError as error:
                answer = _refusal(503, str(error))
            except NotInstalled as missing:
                answer = _refusal(501, str(missing))
        await answer(scope, receive, send)

    async def _tools(self, request: Request) -> Tools:
        """The tools of whoever calls; raises `Refused` if that is nobody."""
        shown, gateway = request.headers.get("authorization", ""), self._gateway
        if self._sign_in.is_terminal(shown):
            return gateway.programs.of_host(await gateway.store.person(HOSTS[0]))
        lent = gateway.programs.lent.tools(shown.partition(" ")[2].strip())
        return lent or gateway.programs.of(await self._tokens.bearer(request, TokenScope.MCP))

    async def _loaded(self) -> ASGIApp:
        """The server itself; loaded and begun by whoever comes first."""
        if not installed():
            raise NotInstalled("/mcp", "the mcp library", _EXTRA)
        if self._app is None or self._serving is None or self._serving.done():
            # One that failed to start is started anew by whoever comes next.
            self._app = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._run(self._app), name="mcp")
        begun: list[asyncio.Future[Any]] = [self._app, self._serving]
        await asyncio.wait(begun, return_when=asyncio.FIRST_COMPLETED)
        if self._serving.done():
            self._serving.result()
        return self._app.result()

    async def _run(self, app: "asyncio.Future[ASGIApp]") -> None:
        # It takes a second or two: others go on meanwhile.
        server: Any = await asyncio.to_thread(import_module, "segue.runtime.mcp.server")
        manager = server.manager()
        async with manager.run():
            app.set_result(manager.handle_request)
            await asyncio.Event().wait()


def _refusal(status: int, words: str) -> JSONResponse:
    headers = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": _LATER}}.get(status, {})
    return JSONResponse({"error": words}, status, headers)
