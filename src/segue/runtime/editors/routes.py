"""The route of editors elsewhere: `/acp`, a WebSocket with a person's token, one message in each frame."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from msgspec.structs import replace
from starlette.websockets import WebSocket, WebSocketDisconnect

from segue.changes.exchange.traces import TurnState
from segue.changes.people import persons
from segue.changes.people.tokens import Bearer, TokenScope
from segue.core.lanes import Identity
from segue.core.messages import File
from segue.core.values import SessionId
from segue.core.windows import ACCOUNT, EDITOR, HOSTS
from segue.errors import Invalid, Overloaded, Refused, StoreError
from segue.runtime.editors.agent import serve
from segue.runtime.editors.wire import Texts
from segue.runtime.server.tokens import Tokens
from segue.runtime.windows.frames import AnsweredFrame, Asked, Begins, NoticeFrame, OpenRequest, SayRequest, Shown
from segue.runtime.windows.routes import SIGNED_OUT, Windows, obey
from segue.runtime.windows.window import Seat, Window

log = logging.getLogger(__name__)

LOOKED = 5.0
"""Seconds between looks whether a token still counts."""
_MOST = 100
"""Frames that wait for an editor; then its window waits, and sums up."""
_WAITING = 200
"""Requests of an editor that wait in one conversation; more are refused."""
_PAUSE = 0.5
_FAILED = 1011
"""The code that a WebSocket is closed with after an error of the server's own."""
_UNFORESEEN = "Something failed here. The host can find the details in the log."
_BUSY = f"{_WAITING} requests of this conversation wait. Read their answers, then ask again."
_WHOLE = "A token for one session can't open an editor, whose commands reach all sessions of its person."


class Editors:
    """Serves editors to those who show a token."""

    def __init__(self, windows: Windows, tokens: Tokens) -> None:
        self._windows = windows
        self._tokens = tokens

    async def serve(self, socket: WebSocket) -> None:
        """Serve an editor until it goes, or its token counts no more."""
        await socket.accept()
        try:
            bearer = await self._tokens.bearer(socket, TokenScope.ACP)
        except Refused as refused:
            await socket.close(SIGNED_OUT, str(refused))
            return
        if bearer.token.session:
            await socket.close(SIGNED_OUT, _WHOLE)
            return
        seat = await self._seat(bearer)

        async def open_window(request: OpenRequest) -> OwnWindow:
            link = OwnWindow(self._windows, seat, request)
            await link.open()
            return link

        counting = asyncio.create_task(self._until_revoked(socket), name="token of an editor")
        try:
            await serve(open_window, Texts(_reading(socket), socket.send_text))
        except WebSocketDisconnect:
            log.debug("an editor closed")
        finally:
            counting.cancel()

    async def _seat(self, bearer: Bearer) -> Seat:
        """The place of whoever shows a token: the host's, or one that Segue knows them by."""
        person, driver = bearer.person, self._windows.store.driver
        identity = next(host for host in HOSTS if host.platform == EDITOR)
        if not set(await driver.read(persons.identities, person.id)) & set(HOSTS):
            identity = Identity(EDITOR, ACCOUNT, person.id)
            await driver.write(persons.give, identity, person.id, time.time())
        return Seat(person.id, person.name, identity=identity)

    async def _until_revoked(self, socket: WebSocket) -> None:
        """Close a connection whose token counts no more, or whose token can't be looked up."""
        try:
            while True:
                await asyncio.sleep(LOOKED)
                await self._tokens.bearer(socket, TokenScope.ACP)
        except Refused as refused:
            await socket.close(SIGNED_OUT, str(refused))
        except Exception:  # nobody may stay whose token was revoked
            log.exception("the token of an editor can't be looked up")
            await socket.close(_FAILED, _UNFORESEEN)


class OwnWindow:
    """A window in this process, for an editor elsewhere."""

    def __init__(self, windows: Windows, seat: Seat, request: OpenRequest) -> None:
        self._windows = windows
        self._seat = seat
        self._request = request
        self._frames: asyncio.Queue[Shown | None] = asyncio.Queue(_MOST)
        self._asked: asyncio.Queue[Asked] = asyncio.Queue(_WAITING)
        self._window: Window | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Open the window."""
        self._window = await self._windows.open(EDITOR, self._seat, self._request, self._frames.put)
        self._tasks = [asyncio.create_task(self._run(self._window)), asyncio.create_task(self._hear(self._window))]

    async def ask(self, request: Asked) -> None:
        """Ask for something; raises `Overloaded` while too much waits, since whoever asks also reads the frames."""
        try:
            self._asked.put_nowait(request)
        except asyncio.QueueFull as full:
            raise Overloaded(_BUSY) from full

    async def frames(self) -> AsyncIterator[Shown]:
        """The window's frames, until it fails."""
        while (frame := await self._frames.get()) is not None:
            yield frame

    async def again(self, session: SessionId | None) -> None:
        """Open the window anew, on the session that it showed."""
        await self.close()
        self._frames, self._asked = asyncio.Queue(_MOST), asyncio.Queue(_WAITING)
        self._request = replace(self._request, begins=Begins.OWN, session=session)
        while True:
            await asyncio.sleep(_PAUSE)
            try:
                await self.open()
            except StoreError as error:
                log.warning("a window of an editor can't be opened: %s", error)
            else:
                return

    async def close(self) -> None:
        """Close the window."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._window is not None:
            self._windows.close(self._window)
            self._window = None

    def locate(self, file: File) -> str:
        """Nothing: an editor elsewhere reaches no file of this machine."""
        del file
        return ""

    async def _run(self, window: Window) -> None:
        try:
            await window.show(self._request)
        except StoreError as error:
            log.warning("a window of an editor failed: %s", error)
        except Exception:  # whatever it is, the frames end, and the window is opened again
            log.exception("a window of an editor failed in a way that nobody foresaw")
        await self._frames.put(None)

    async def _hear(self, window: Window) -> None:
        while True:
            request = await self._asked.get()
            try:
                await obey(window, request)
            except (Invalid, Refused, StoreError) as error:
                await self._frames.put(NoticeFrame(str(error)))
            except Exception:  # whatever it is, the next request has its turn, and nobody waits for this one
                log.exception("an editor's request failed in a way that nobody foresaw")
                await self._frames.put(NoticeFrame(_UNFORESEEN))
                if isinstance(request, SayRequest):
                    await self._frames.put(AnsweredFrame(request.id, state=TurnState.FAILED))


def _reading(socket: WebSocket) -> Callable[[], Awaitable[str | bytes | None]]:
    async def read() -> str | bytes | None:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return None
        text: str | bytes = message.get("text") or message.get("bytes") or ""
        return text

    return read
