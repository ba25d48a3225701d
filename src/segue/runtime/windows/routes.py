"""What a browser and a terminal are served: the page, signing in, and windows over WebSocket."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from segue.core.moves import Consent
from segue.core.windows import TERMINAL, WEB
from segue.errors import Invalid, StoreError
from segue.runtime.files import UNKNOWN, Folder
from segue.runtime.windows.local import Local
from segue.runtime.windows.sign_in import COOKIE, Door
from segue.runtime.windows.window import Host, Seat, Window

log = logging.getLogger(__name__)

_PAGE = files("segue").joinpath("page")
_KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "html": "text/html"}
_PICTURES = {"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}
_KEPT = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox", "Cache-Control": "private"}
_frame = msgspec.json.Decoder(dict[str, Any])
_YEAR = 365 * 86400
_POLICY = "default-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'"
_SIGNED_OUT = 4401
"""The code a WebSocket is closed with when its cookie or token isn't ours."""
_ELSEWHERE = 4403
"""The code it is closed with when the page that opened it came from another address."""


class Windows:
    """Opens windows for those whom the door knows."""

    def __init__(
        self, gateway: Host, door: Door, places: tuple[Local, Local], files: Folder, name: str, url: str = ""
    ) -> None:
        terminal, web = places
        self._files = files
        self._name = name
        self._url = url
        self._gateway = gateway
        self._door = door
        self._places = {TERMINAL: terminal, WEB: web}

    def routes(self) -> list[BaseRoute]:
        """What the server serves."""
        return [
            Route("/", self._page),
            Route("/signin", self._sign_in),
            Route("/link", self._link, methods=["POST"]),
            Route("/page/{name}", self._file),
            Route("/files/{start}/{digest}/{name}", self._kept),
            WebSocketRoute("/live", self._live),
        ]

    async def _page(self, request: Request) -> Response:
        signed_in = self._door.browser(request.cookies.get(COOKIE, "")) is not None
        name = "index.html" if signed_in else "signed-out.html"
        headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
        return HTMLResponse(_PAGE.joinpath(name).read_text("utf-8"), 200 if signed_in else 401, headers)

    async def _sign_in(self, request: Request) -> Response:
        cookie = self._door.sign_in(request.query_params.get("code", ""))
        answer = RedirectResponse("/", 303, {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"})
        if cookie is not None:
            secure = request.url.scheme == "https"
            answer.set_cookie(COOKIE, cookie, max_age=_YEAR, httponly=True, samesite="lax", secure=secure)
        return answer

    async def _link(self, request: Request) -> Response:
        """A link that signs one browser in, for whoever shows the data folder's token."""
        if not self._door.is_terminal(request.headers.get("authorization", "")):
            return JSONResponse({"error": "Show the token of the data folder."}, 401)
        return JSONResponse({"link": self._url + self._door.link()}, headers={"Cache-Control": "no-store"})

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        known = {file.name for file in _PAGE.iterdir()}
        if name not in known:
            return Response("There is no such file.", 404)
        kind = _KINDS.get(name.rpartition(".")[2], "application/octet-stream")
        return FileResponse(str(_PAGE.joinpath(name)), media_type=kind, headers={"Cache-Control": "no-cache"})

    async def _kept(self, request: Request) -> Response:
        """A file that came with a message. Whoever sent it may have written a page: it is saved, never opened here."""
        if self._door.browser(request.cookies.get(COOKIE, "")) is None:
            return Response("Sign in first.", 401)
        found = self._files.path("files/{start}/{digest}".format_map(request.path_params))
        if found is None:
            return Response("There is no such file.", 404)
        name = request.path_params["name"]
        kind = _PICTURES.get(name.rpartition(".")[2].lower(), UNKNOWN)
        return FileResponse(found, media_type=kind, filename=name, headers=_KEPT)

    async def _live(self, socket: WebSocket) -> None:
        seat = self._seat(socket)
        await socket.accept()
        if seat is None:
            await socket.close(_SIGNED_OUT, "Sign in first.")
            return
        platform, who = seat
        # Another site's page may open a WebSocket to us with our cookie; its Origin tells.
        own = urlsplit(socket.headers.get("origin", "")).netloc == socket.headers.get("host", "")
        if platform == WEB and not own:
            await socket.close(_ELSEWHERE, "Open the page at the address that Segue listens on.")
            return

        async def send(frame: dict[str, Any]) -> None:
            await socket.send_text(json.dumps(frame))

        window = Window(self._gateway, self._places[platform], who, send)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(window.show())
                group.create_task(self._hear(socket, window))
        except* WebSocketDisconnect:
            log.debug("a window closed")

    async def _hear(self, socket: WebSocket, window: Window) -> None:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message["code"])
            try:
                await self._obey(window, _frame.decode(message.get("text") or message.get("bytes") or ""))
            except RecursionError:
                await socket.send_text(json.dumps({"notice": "frame: it is nested too deep. Reload the page."}))
            except (msgspec.MsgspecError, UnicodeError, Invalid, StoreError) as error:
                await socket.send_text(json.dumps({"notice": str(error)}))

    async def _obey(self, window: Window, frame: dict[str, Any]) -> None:
        match frame:
            case {"say": str(said), "id": str(id)}:
                await window.say(id, said, time.time())
            case {"handoff": str(destination), "session": str(session), "yes": bool(yes)}:
                await window.hand_off(session, destination, Consent.GIVEN if yes else Consent.ASKED)
            case {"invite": True}:
                await window.invite()
            case {"commands": True}:
                await window.list_commands()
            case {"list": True}:
                await window.list_sessions()
            case {"search": str(words)}:
                await window.search(words)
            case {"resume": str(session)}:
                await window.resume(session)
            case _:
                raise Invalid("frame", "it is none that a window sends", "Reload the page.")

    def _seat(self, socket: HTTPConnection) -> tuple[str, Seat] | None:
        authorization = socket.headers.get("authorization", "")
        if authorization:
            user = socket.headers.get("x-segue-user") or self._name
            # A script that names its session has a lane of its own: the terminals stay where they are.
            chat = socket.headers.get("x-segue-chat") or user
            return (TERMINAL, Seat(chat, user)) if self._door.is_terminal(authorization) else None
        browser = self._door.browser(socket.cookies.get(COOKIE, ""))
        return (WEB, Seat(browser, self._name)) if browser else None
