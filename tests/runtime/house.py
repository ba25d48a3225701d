"""A gateway that serves windows on a real port, and guests who open them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from websockets.asyncio.client import ClientConnection, connect

from segue.core.contracts.adapters import Adapter
from segue.core.contracts.agents import Agent
from segue.core.settings import AccountSettings, GatewaySettings
from segue.core.windows import HOSTS, TERMINAL, WEB
from segue.database.sqlite import Sqlite
from segue.runtime.files import Folder
from segue.runtime.gateway import Gateway
from segue.runtime.retrying import Patient
from segue.runtime.server.app import make_app
from segue.runtime.server.listeners import Listener, serving
from segue.runtime.windows.local import Local
from segue.runtime.windows.routes import Windows
from segue.runtime.windows.sign_in import COOKIE, Door, token_in
from segue.runtime.windows.window import meet_host
from segue.store import Store
from segue.testing.waits import PATIENCE, NeverCame

Frame = dict[str, Any]
PUBLIC = AccountSettings(public=True)


def said(frame: Frame) -> list[Frame]:
    """The entries that a frame shows."""
    shown: list[Frame] = frame.get("entries") or frame.get("transcript") or []
    return shown


class Guest:
    """Somebody who looks through a window, and shows what it is told as the page does."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.seen: list[Frame] = []
        self.session: Frame | None = None
        self.transcript: list[str] = []
        self.waiting: list[str] = []

    async def frame(self) -> Frame:
        """The next that comes."""
        try:
            async with asyncio.timeout(PATIENCE):
                frame: Frame = json.loads(await self.socket.recv())
        except TimeoutError:
            raise NeverCame(f"shown: {self.transcript}, waiting: {self.waiting}, last: {self.seen[-5:]}") from None
        self.seen.append(frame)
        texts = [entry["text"] for entry in said(frame)]
        self.transcript = texts if "transcript" in frame else self.transcript + texts
        self.waiting = [turn["text"] for turn in frame["waiting"]] if "waiting" in frame else self.waiting
        self.session = frame.get("session", self.session)
        return frame

    async def until(self, so: Callable[[Frame], object]) -> Frame:
        """The next frame that is so."""
        while not so(frame := await self.frame()):
            """Not this one."""
        return frame

    async def opened(self) -> None:
        """All that there was is shown."""
        await self.until(lambda frame: "waiting" in frame)

    async def shows(self, *texts: str) -> None:
        """The transcript is this, and nothing waits."""
        while self.transcript != list(texts) or self.waiting or not self.seen or "waiting" not in self.seen[-1]:
            await self.frame()

    async def sends(self, **frame: Any) -> None:
        """Any frame."""
        await self.socket.send(json.dumps(frame))

    async def says(self, text: str, id: str = "") -> str:
        """Say something; returns its id."""
        id = id or uuid4().hex
        await self.sends(say=text, id=id)
        return id


class House:
    """The gateway, its door and its address."""

    def __init__(self, gateway: Gateway, terminal: Local, door: Door, listener: Listener, folder: Path) -> None:
        self.gateway = gateway
        self.door = door
        self.terminals = terminal
        self.url = listener.url
        self._token = token_in(folder)

    def cookie(self) -> str:
        """The cookie of a new browser."""
        return f"{COOKIE}={self.door.sign_in(self.door.link().partition('=')[2])}"

    @asynccontextmanager
    async def page(self, cookie: str = "", **headers: str) -> AsyncIterator[Guest]:
        """A page in a browser that signed in."""
        async with self.window({"Cookie": cookie or self.cookie(), "Origin": self.url, **headers}) as guest:
            yield guest

    @asynccontextmanager
    async def terminal(self, user: str = "ann") -> AsyncIterator[Guest]:
        """A terminal on this machine."""
        async with self.window({"Authorization": f"Bearer {self._token}", "X-Segue-User": user}) as guest:
            yield guest

    @asynccontextmanager
    async def window(self, headers: dict[str, str]) -> AsyncIterator[Guest]:
        """A window that shows these headers."""
        address = self.url.replace("http", "ws") + "/live"
        async with connect(address, additional_headers=headers, proxy=None) as socket:
            yield Guest(socket)


@asynccontextmanager
async def _meeting(store: Store) -> AsyncIterator[None]:
    await meet_host(store)
    yield


@asynccontextmanager
async def house(
    folder: Path, agent: Agent, *adapters: Adapter, account: AccountSettings = PUBLIC
) -> AsyncIterator[House]:
    """A gateway with windows, on a database of its own."""
    terminal, web = Local(TERMINAL), Local(WEB)
    accounts = {(adapter.platform, adapter.account): account for adapter in adapters}
    settings = GatewaySettings(hosts=HOSTS, accounts=accounts, poll=0.05, grace=0.0)
    async with (
        Store(await Sqlite.open(folder / "segue.db")) as store,
        _meeting(store),
        Gateway(store, agent, [terminal, web, *adapters], settings) as gateway,
    ):
        door = await Door.open(Patient(store.driver), folder)
        listener = Listener("127.0.0.1", 0)
        windows = Windows(gateway, door, (terminal, web), Folder(folder), "ann")
        async with serving(make_app(gateway, (), windows.routes()), listener, 1.0):
            yield House(gateway, terminal, door, listener, folder)
