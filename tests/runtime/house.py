"""A gateway that serves windows on a real port, and guests who open them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import msgspec
from starlette.applications import Starlette
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from segue.cli.gateway import SOCKET
from segue.core.contracts.adapters import Adapter
from segue.core.contracts.agents import Agent
from segue.core.lanes import Identity
from segue.core.people import Allowances
from segue.core.settings import AccountSettings, GatewaySettings
from segue.core.transcripts import Tip
from segue.core.windows import EDITOR, HOSTS, PROGRAM, TERMINAL, WEB
from segue.runtime.editors.door import EditorDoor
from segue.runtime.files.folder import Folder
from segue.runtime.gateway import Gateway
from segue.runtime.mcp.door import McpDoor
from segue.runtime.retrying import Patient
from segue.runtime.server.app import make_app
from segue.runtime.server.listeners import Listener, LocalListener, serving
from segue.runtime.windows.frames import (
    Asked,
    EarlierFrame,
    EntriesFrame,
    NoticeFrame,
    OpenRequest,
    SayRequest,
    Shown,
    ShownEntry,
    ShownSession,
    TranscriptFrame,
    WaitingFrame,
    encode,
)
from segue.runtime.windows.local import Local
from segue.runtime.windows.routes import Windows
from segue.runtime.windows.sign_in import COOKIE, SignIn, token_in
from segue.runtime.windows.window import meet_host
from segue.store import Store, open_driver
from segue.testing.waits import PATIENCE, NeverCame
from tests.in_process import PUBLIC, gateway_on

OPEN = OpenRequest()
F = TypeVar("F")
_shown = msgspec.json.Decoder(Shown)


def said(frame: Shown) -> tuple[ShownEntry, ...]:
    """The entries that a frame adds."""
    return frame.entries if isinstance(frame, TranscriptFrame | EntriesFrame) else ()


class Guest:
    """Somebody who looks through a window, and shows what it is told as the page does."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.seen: list[Shown] = []
        self.session: ShownSession | None = None
        self.transcript: list[str] = []
        self.earlier: Tip | None = None
        self.waiting: list[str] = []

    async def frame(self) -> Shown:
        """The next that comes."""
        try:
            async with asyncio.timeout(PATIENCE):
                frame: Shown = _shown.decode(await self.socket.recv())
        except TimeoutError:
            raise NeverCame(f"shown: {self.transcript}, waiting: {self.waiting}, last: {self.seen[-5:]}") from None
        self.seen.append(frame)
        match frame:
            case TranscriptFrame():
                self.session, self.earlier = frame.session, frame.earlier
                self.transcript = [entry.text for entry in frame.entries]
            case EntriesFrame():
                self.session = frame.session
                self.transcript += [entry.text for entry in frame.entries]
            case EarlierFrame():
                self.earlier = frame.earlier
                self.transcript = [*(entry.text for entry in frame.entries), *self.transcript]
            case WaitingFrame():
                self.waiting = [turn.text for turn in frame.turns]
            case _:
                """It changes nothing that stands there."""
        return frame

    async def until(self, so: Callable[[Shown], object]) -> Shown:
        """The next frame that is so."""
        while not so(frame := await self.frame()):
            """Not this one."""
        return frame

    async def shown(self, kind: type[F], so: Callable[[F], object] = lambda _: True) -> F:
        """The next frame of a kind that is so."""
        while not (isinstance(frame := await self.frame(), kind) and so(frame)):
            """Not this one."""
        return frame

    def had(self, kind: type[F]) -> list[F]:
        """The frames of a kind that came so far."""
        return [frame for frame in self.seen if isinstance(frame, kind)]

    async def opened(self) -> None:
        """All that there was is shown."""
        await self.shown(WaitingFrame)

    async def shows(self, *texts: str) -> None:
        """The transcript is this, and nothing waits."""
        while (
            self.transcript != list(texts)
            or self.waiting
            or not self.seen
            or not isinstance(self.seen[-1], WaitingFrame)
        ):
            await self.frame()

    async def sends(self, request: Asked) -> None:
        """Any request."""
        await self.socket.send(encode(request))

    async def says(self, text: str, id: str = "") -> str:
        """Say something; returns its id."""
        id = id or uuid4().hex
        await self.sends(SayRequest(id, text))
        return id

    async def told(self, text: str) -> str:
        """Type a command, and return what Segue says to it."""
        await self.says(text)
        return (await self.shown(NoticeFrame)).text


class House:
    """The gateway, its sign-in and its address."""

    def __init__(
        self, gateway: Gateway, terminal: Local, sign_in: SignIn, listener: Listener, folder: Path, app: Starlette
    ) -> None:
        self.folder = folder
        self._app = app
        self.gateway = gateway
        self.sign_in = sign_in
        self.terminals = terminal
        self.url = listener.url
        self._token = token_in(folder)

    def cookie(self) -> str:
        """The cookie of a new browser."""
        return f"{COOKIE}={self.sign_in.sign_in(self.sign_in.link().partition('=')[2])}"

    @asynccontextmanager
    async def page(self, cookie: str = "", request: Asked = OPEN, **headers: str) -> AsyncIterator[Guest]:
        """A page in a browser that signed in."""
        async with self.window({"Cookie": cookie or self.cookie(), "Origin": self.url, **headers}, request) as guest:
            yield guest

    @asynccontextmanager
    async def terminal(self, user: str = "ann", request: Asked = OPEN) -> AsyncIterator[Guest]:
        """A terminal on this machine."""
        async with self.window({"Authorization": f"Bearer {self._token}", "X-Segue-User": user}, request) as guest:
            yield guest

    @asynccontextmanager
    async def at_socket(self) -> AsyncIterator[None]:
        """Serve at the socket in the data folder too, as a real one does."""
        async with serving(self._app, LocalListener(self.folder / SOCKET), 1.0):
            yield

    @asynccontextmanager
    async def window(self, headers: dict[str, str], request: Asked = OPEN) -> AsyncIterator[Guest]:
        """A window that shows these headers, and asks for this first."""
        address = self.url.replace("http", "ws") + "/live"
        async with connect(address, additional_headers=headers, proxy=None) as socket:
            guest = Guest(socket)
            with suppress(ConnectionClosed):
                await guest.sends(request)
            yield guest


@asynccontextmanager
async def house(
    folder: Path,
    agent: Agent,
    *adapters: Adapter,
    account: AccountSettings = PUBLIC,
    limits: Allowances | None = None,
    hosts: tuple[Identity, ...] = HOSTS,
) -> AsyncIterator[House]:
    """A gateway with windows, on a database of its own."""
    terminal, web, editor, program = (Local(platform) for platform in (TERMINAL, WEB, EDITOR, PROGRAM))
    accounts = {(adapter.platform, adapter.account): account for adapter in (editor, *adapters)}
    settings = GatewaySettings(hosts=hosts, accounts=accounts, poll=0.05, limits=limits or Allowances())
    there, files = (terminal, web, editor, program, *adapters), Folder(folder)
    driver = await open_driver(folder / "segue.db")
    await meet_host(Store(driver))
    async with gateway_on(driver, agent, *there, settings=settings, files=files) as gateway:
        sign_in = await SignIn.open(Patient(driver), folder)
        listener = Listener("127.0.0.1", 0)
        windows = Windows(gateway, sign_in, (terminal, web, editor), files, "ann")
        door = McpDoor(gateway, sign_in, listener.url)
        app = make_app(gateway, (), [*windows.routes(), *door.routes(), *EditorDoor(windows, gateway).routes()])
        async with door.open(), serving(app, listener, 1.0):
            yield House(gateway, terminal, sign_in, listener, folder, app)
