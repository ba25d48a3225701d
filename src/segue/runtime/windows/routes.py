"""Routes for browsers and terminals: the page, signing in, and windows over WebSocket."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from html import escape
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import TypeVar, assert_never
from urllib.parse import parse_qs, quote, urlsplit

import msgspec
from msgspec.structs import replace
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from segue.changes import audit
from segue.changes.audit import Event, Fact
from segue.changes.people.allowances import Allowing
from segue.changes.people.browsers import LIFETIME
from segue.core.contracts.files import FileStore, is_kept
from segue.core.messages import File
from segue.core.values import PersonId
from segue.core.windows import EDITOR, TERMINAL, WEB
from segue.errors import Invalid, Refusal, Refused, StoreError
from segue.runtime.files.folder import UNKNOWN
from segue.runtime.gateway import Gateway
from segue.runtime.server.callers import vouch
from segue.runtime.windows.frames import (
    Asked,
    Begins,
    CommandsRequest,
    EarlierRequest,
    HandoffRequest,
    NoticeFrame,
    OpenRequest,
    RefusedFrame,
    ResumeRequest,
    SayRequest,
    SearchRequest,
    SessionsRequest,
    Shown,
    encode,
    requests,
)
from segue.runtime.windows.local import Local
from segue.runtime.windows.sign_in import COOKIE, SECURE_COOKIE, SignIn
from segue.runtime.windows.window import Seat, Send, Window, not_yours

T = TypeVar("T")
log = logging.getLogger(__name__)

_PAGE = Path(str(files("segue").joinpath("page")))
_FILES = frozenset(str(file.relative_to(_PAGE)) for file in _PAGE.rglob("*") if file.is_file())
_KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "html": "text/html"}
_PICTURES = {"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}
_KEPT = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox", "Cache-Control": "private"}
_OWN = frozenset({Begins.OWN, Begins.JOINED, Begins.NEW})
_LOOKED = 5.0
"""Seconds between looks whether the browser of an open window is still signed in."""
_POLICY = (
    "default-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'self'"
)
_SHOWN = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
SIGNED_OUT = 4401
"""The code a WebSocket is closed with when its cookie or token isn't ours."""
_ELSEWHERE = 4403
"""The code it is closed with when the page that opened it came from another address."""


class Windows:
    """Opens windows for those who signed in."""

    def __init__(
        self,
        gateway: Gateway,
        sign_in: SignIn,
        places: Iterable[Local],
        files: FileStore,
        name: str,
        url: str = "",
    ) -> None:
        self._files = files
        self._name = name
        self._url = url
        self._secure = url.startswith("https:")
        self._netloc = urlsplit(url).netloc
        self._gateway = gateway
        self.store = gateway.store
        self._sign_in = sign_in
        self._places = {place.platform: place for place in places}
        self._allowing = Allowing(gateway.settings)
        self._open = Counter[PersonId]()
        """Windows of each person that are open here."""

    def routes(self) -> list[BaseRoute]:
        """Routes of the server."""
        return [
            Route("/", self._page),
            Route("/signin", self._sign_in_page),
            Route("/signin", self._follow_link, methods=["POST"]),
            Route("/signout", self._sign_out, methods=["POST"]),
            Route("/link", self._link, methods=["POST"]),
            Route("/page/{name:path}", self._file),
            Route("/files/{start}/{digest}/{name}", self._kept),
            WebSocketRoute("/live", self._live),
        ]

    async def _page(self, request: Request) -> Response:
        await self._sign_in.refresh()
        signed_in = self._sign_in.shown_by(request) is not None
        name = "index.html" if signed_in else "signed-out.html"
        return HTMLResponse(_PAGE.joinpath(name).read_text("utf-8"), 200 if signed_in else 401, _SHOWN)

    async def _sign_in_page(self, request: Request) -> Response:
        """A button: whatever looks at links before people do uses none up."""
        page = _PAGE.joinpath("sign-in.html").read_text("utf-8")
        return HTMLResponse(page.replace("{code}", escape(request.query_params.get("code", ""))), 200, _SHOWN)

    async def _follow_link(self, request: Request) -> Response:
        try:
            typed = parse_qs((await request.body()).decode("ascii", "replace"), max_num_fields=4)
        except ValueError:
            return Response("Send the code alone.", 400)
        cookie = self._sign_in.sign_in(typed.get("code", [""])[0])
        answer = RedirectResponse("/", 303, {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"})
        if cookie is not None:
            await self._sign_in.note(cookie, request.headers.get("host", ""))
            name = SECURE_COOKIE if self._secure else COOKIE
            answer.set_cookie(name, cookie, max_age=int(LIFETIME), httponly=True, samesite="lax", secure=self._secure)
        return answer

    async def _sign_out(self, request: Request) -> Response:
        browser = self._sign_in.shown_by(request)
        # A page of another site that posts here has no cookie of ours: it is SameSite=Lax.
        if browser is not None:
            await self._sign_in.sign_out(browser)
        answer = RedirectResponse("/", 303, {"Cache-Control": "no-store"})
        for name in (COOKIE, SECURE_COOKIE):
            answer.delete_cookie(name, secure=name == SECURE_COOKIE, httponly=True, samesite="lax")
        return answer

    async def _link(self, request: Request) -> Response:
        """A link that signs one browser in, for whoever shows the data folder's token."""
        if not self._sign_in.is_terminal(request.headers.get("authorization", "")):
            return JSONResponse({"error": "Show the token of the data folder."}, 401)
        return JSONResponse({"link": self._url + self._sign_in.link()}, headers={"Cache-Control": "no-store"})

    async def _file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _FILES:
            return Response("There is no such file.", 404)
        kind = _KINDS.get(name.rpartition(".")[2], "application/octet-stream")
        return FileResponse(
            str(_PAGE.joinpath(name)),
            media_type=kind,
            headers={"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"},
        )

    async def _kept(self, request: Request) -> Response:
        """A file that came with a message. Whoever sent it may have written a page: it is saved, never opened here."""
        await self._sign_in.refresh()
        terminal = self._sign_in.is_terminal(request.headers.get("authorization", ""))
        if not terminal and self._sign_in.shown_by(request) is None:
            return Response("Sign in first.", 401)
        where, name = "files/{start}/{digest}".format_map(request.path_params), request.path_params["name"]
        size = await self._files.find_size(where) if is_kept(where) else None
        if size is None:
            return Response("There is no such file.", 404)
        kind = _PICTURES.get(name.rpartition(".")[2].lower(), UNKNOWN)
        saved_as = f"attachment; filename*=utf-8''{quote(name)}"
        headers = {**_KEPT, "Content-Length": str(size), "Content-Disposition": saved_as}
        return StreamingResponse(self._files.stream(File(name, kind, where, size)), media_type=kind, headers=headers)

    async def _live(self, socket: WebSocket) -> None:
        await self._sign_in.refresh()
        seat = self._seat(socket)
        await socket.accept()
        if seat is None:
            await socket.close(SIGNED_OUT, "Sign in first.")
            return
        vouch(socket.scope)
        platform, who = seat
        # Another site's page may open a WebSocket to us with our cookie; its Origin tells.
        origin = urlsplit(socket.headers.get("origin", "")).netloc
        own = origin != "" and origin in (socket.headers.get("host", ""), self._netloc)
        if platform == WEB and not own:
            await socket.close(_ELSEWHERE, "Open the page at the address that Segue listens on.")
            return

        try:
            window, asked = await self._opened(socket, platform, who)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(window.show(asked))
                    group.create_task(self._hear(socket, window))
                    if platform == WEB:
                        group.create_task(self._until_signed_out(socket))
            finally:
                self.close(window)
        except* WebSocketDisconnect:
            log.debug("a window closed")

    async def _opened(self, socket: WebSocket, platform: str, who: Seat) -> tuple[Window, OpenRequest]:
        """The window that the first frame asks for."""

        async def send(frame: Shown) -> None:
            await socket.send_text(encode(frame))

        async def open_one(request: Asked) -> tuple[Window, OpenRequest] | None:
            if not isinstance(request, OpenRequest):
                raise Invalid("frame", "a window is opened first", "Reload the page.")
            try:
                return await self.open(platform, who, request, send), request
            except Refused as refused:
                none = refused.why is Refusal.NOT_FOUND and request.session
                await send(RefusedFrame(not_yours(request.session or "") if none else str(refused)))
                return None

        while (opened := await _next(socket, open_one)) is None:
            """It was told what is wrong, and may try again."""
        return opened

    async def open(self, platform: str, who: Seat, request: OpenRequest, send: Send) -> Window:
        """A window for somebody who was let in; it counts until it is closed."""
        place = self._places[platform]
        window = Window(self._gateway, place, _seat_of(who, request, place), send, time.time, self._files)
        await window.open(request)
        await self._count(window.person.id)
        return window

    def close(self, window: Window) -> None:
        """Count a window no more."""
        self._open[window.person.id] -= 1

    async def _count(self, person: PersonId) -> None:
        """Count a window more of a person's, unless they have as many as they may."""
        driver = self._gateway.store.driver
        most = (await driver.read(self._allowing.of, person)).windows
        if self._open[person] >= most:
            await driver.write(audit.note, Fact(Event.LIMITED, person, detail="windows"), time.time())
            raise Invalid("window", f"you have {most} open, which is as many as you may", "Close one, then open this.")
        self._open[person] += 1

    async def _until_signed_out(self, socket: WebSocket) -> None:
        """Close a window whose browser signed out, or was signed out."""
        while self._sign_in.shown_by(socket) is not None:
            await asyncio.sleep(_LOOKED)
            await self._sign_in.refresh()
        await socket.close(SIGNED_OUT, "Sign in first.")
        raise WebSocketDisconnect(SIGNED_OUT)

    async def _hear(self, socket: WebSocket, window: Window) -> None:
        while True:
            await _next(socket, partial(obey, window))

    def _seat(self, socket: HTTPConnection) -> tuple[str, Seat] | None:
        authorization = socket.headers.get("authorization", "")
        if authorization:
            user = socket.headers.get("x-segue-user") or self._name
            platform = EDITOR if socket.headers.get("x-segue-window") == EDITOR else TERMINAL
            return (platform, Seat(user, user)) if self._sign_in.is_terminal(authorization) else None
        browser = self._sign_in.shown_by(socket)
        return (WEB, Seat(browser, self._name)) if browser else None


async def obey(window: Window, request: Asked) -> None:
    """Do what a window asks for."""
    match request:
        case SayRequest():
            await window.say(request)
        case HandoffRequest():
            await window.hand_off(request)
        case EarlierRequest():
            await window.earlier(request.cursor)
        case CommandsRequest():
            await window.list_commands()
        case SessionsRequest():
            await window.list_sessions(request.after)
        case SearchRequest():
            await window.search(request.words)
        case ResumeRequest():
            await window.resume(request.session)
        case OpenRequest():
            raise Invalid("frame", "this window is open", "Open another one.")
        case _:
            assert_never(request)


def _seat_of(who: Seat, request: OpenRequest, place: Local) -> Seat:
    """The lane that a window asks for; beside one that is looked at already, the first that nobody looks at."""
    own = f"{who.chat}:{request.lane}" if request.lane else who.chat
    if request.begins not in _OWN or not place.watched(own):
        return replace(who, chat=own)
    free = next(chat for n in count(2) if not place.watched(chat := f"{own}:{n}"))
    return replace(who, chat=free, beside=own)


async def _next(socket: WebSocket, obey: Callable[[Asked], Awaitable[T]]) -> T | None:
    """Do what the next frame asks for; if that can't be, tell why."""
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message["code"])
    try:
        return await obey(requests.decode(message.get("text") or message.get("bytes") or ""))
    except RecursionError:
        wrong = "frame: it is nested too deep. Reload the page."
    except (msgspec.MsgspecError, UnicodeError, Invalid, Refused, StoreError) as error:
        wrong = str(error)
    await socket.send_text(encode(NoticeFrame(wrong)))
    return None
