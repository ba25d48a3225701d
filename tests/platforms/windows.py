"""What a terminal's or a page's window shows, frame by frame."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from uuid import uuid4

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from segue.cli.terminal.client import Client, NoGateway, ask, connected
from segue.runtime.windows.frames import (
    MOST,
    AcceptedFrame,
    EarlierFrame,
    EarlierRequest,
    EntriesFrame,
    HandoffFrame,
    NoticeFrame,
    OpenRequest,
    SayRequest,
    Shown,
    TranscriptFrame,
    encode,
)
from segue.testing.waits import Changes
from tests.clients import http_client

_shown = msgspec.json.Decoder(Shown)


class Window:
    """One window: what stands in it now, and what it was told."""

    def __init__(self) -> None:
        self.title = ""
        self.entries: list[str] = []
        self.notices: list[str] = []
        self.states: list[str] = []
        """How far a handoff was, as it was shown."""
        self.accepted: set[str] = set()
        self.changes = Changes()

    def see(self, frame: Shown) -> None:
        """Show a frame."""
        match frame:
            case TranscriptFrame() | EntriesFrame():
                self.title = frame.session.title if frame.session else ""
                kept = [] if isinstance(frame, TranscriptFrame) else self.entries
                self.entries = [*kept, *(entry.text for entry in frame.entries)]
            case EarlierFrame():
                self.entries = [*(entry.text for entry in frame.entries), *self.entries]
            case NoticeFrame():
                self.notices.append(frame.text)
            case HandoffFrame():
                self.states.append(frame.state)
            case AcceptedFrame():
                self.accepted.add(frame.id)
            case _:
                """It changes nothing of this."""
        self.changes.tell()

    async def shows(self, *texts: str) -> None:
        """Wait until these are the last that stand in it."""
        await self.changes.until(
            lambda: self.entries[-len(texts) :] == list(texts) or None, lambda: f"{texts!r} never; {self.entries!r}"
        )

    async def tells(self, text: str) -> None:
        """Wait for a notice that has this in it."""
        await self.changes.until(
            lambda: any(text in notice for notice in self.notices) or None, lambda: f"{text!r} never; {self.notices!r}"
        )


class Terminal(Window):
    """A terminal's window on the gateway of a home."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client

    async def follow(self) -> None:
        """See what comes until the gateway goes."""
        async for frame in self._client.frames():
            self.see(frame)

    async def says(self, text: str) -> None:
        """Type something; returns once it is durable."""
        id = await self._client.say(text)
        await self.changes.until(lambda: id in self.accepted or None, lambda: f"{text!r} was never taken in")


@asynccontextmanager
async def terminal(home: Path) -> AsyncIterator[Terminal]:
    """A terminal that is open until the block ends."""
    async with connected(home) as client:
        here = Terminal(client)
        following = asyncio.create_task(here.follow())
        try:
            yield here
        finally:
            following.cancel()


class Page(Window):
    """A page that is open in a browser, and opens its connection again whenever that breaks."""

    def __init__(self, url: str, cookie: str) -> None:
        super().__init__()
        self._url = url
        self._cookie = cookie
        self._socket: ClientConnection | None = None

    @classmethod
    async def sign_in(cls, home: Path) -> "Page":
        """A new browser, by a link of the gateway that runs."""
        link = (await ask(home, "POST", "/link")).json()["link"]
        async with http_client() as client:
            address, _, code = link.partition("?code=")
            answer = await client.post(address, data={"code": code})
        return cls(link.partition("/signin")[0], answer.headers["set-cookie"].partition(";")[0])

    async def follow(self) -> None:
        """See what comes, whichever gateway it comes from, until cancelled."""
        headers = {"Cookie": self._cookie}
        live = self._url.replace("http://", "ws://") + "/live"
        while True:
            with suppress(OSError, InvalidHandshake, ConnectionClosed, TimeoutError):
                async with connect(live, additional_headers=headers, origin=self._url, max_size=None) as socket:  # type: ignore[arg-type]  # an Origin is a string
                    # All of it: what is compared in the end may have been said before the connection broke.
                    await socket.send(encode(OpenRequest(MOST)))
                    self._socket = socket
                    self.changes.tell()
                    async for text in socket:
                        self.see(frame := _shown.decode(text))
                        if isinstance(frame, TranscriptFrame | EarlierFrame) and frame.earlier is not None:
                            await socket.send(encode(EarlierRequest(frame.earlier)))
            self._socket = None
            await asyncio.sleep(0.05)

    async def says(self, text: str) -> None:
        """Say something, again with the same id after each break, until it is durable."""
        id = uuid4().hex
        while id not in self.accepted:
            socket = self._socket
            with suppress(ConnectionClosed):
                if socket is not None:
                    await socket.send(encode(SayRequest(id, text)))
            while id not in self.accepted and (self._socket is socket or self._socket is None):
                await self._next()

    async def _next(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await self.changes.next()


async def is_open(home: Path) -> bool:
    """Whether a gateway takes windows in a home."""
    try:
        return (await ask(home, "GET", "/readyz")).status_code == 200
    except NoGateway:
        return False
