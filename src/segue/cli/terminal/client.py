"""A connection to the gateway through the socket in the data folder."""

import asyncio
import getpass
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import chain, count
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote
from uuid import uuid4

import httpx2
import msgspec
from msgspec.structs import replace
from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from segue.cli.gateway import SOCKET, RunningGateway, gateway
from segue.cli.host import make_log
from segue.cli.output import printable
from segue.config import Config
from segue.core.contracts.files import is_kept
from segue.core.messages import File
from segue.core.values import SessionId
from segue.core.windows import TERMINAL
from segue.errors import Invalid, SegueError
from segue.runtime.server.listeners import AlreadyServed, Listener, is_served
from segue.runtime.telemetry.log_files import logging_to
from segue.runtime.windows.frames import Asked, Begins, OpenRequest, SayRequest, Shown, encode
from segue.runtime.windows.sign_in import token_in

_LARGEST = 64 * 1024 * 1024
_OPEN = OpenRequest()
_PAUSE = 0.5
_frames = msgspec.json.Decoder(Shown)


class NoGateway(SegueError):
    """No gateway serves this data folder."""


class Client:
    """A window of this user's terminal or of a script."""

    def __init__(self, socket: ClientConnection, folder: Path, opening: OpenRequest, platform: str = TERMINAL) -> None:
        self._socket = socket
        self._folder = folder
        self._opening = opening
        self._platform = platform
        self._read = read_frame if platform == TERMINAL else _frames.decode

    async def say(self, text: str, id: str = "") -> str:
        """Send a message; return the id in its acknowledgement. A repeated id means the same message."""
        id = id or uuid4().hex
        await self.ask(SayRequest(id, text))
        return id

    async def ask(self, request: Asked) -> None:
        """Send a request; the answer is a frame."""
        try:
            await self._socket.send(encode(request))
        except ConnectionClosed as error:
            raise NoGateway("The gateway has gone. Start it again with `segue serve`.") from error

    async def frames(self) -> AsyncIterator[Shown]:
        """Yield the gateway's frames until the gateway ends."""
        try:
            async for text in self._socket:
                yield self._read(text)
        except ConnectionClosed:
            return

    async def again(self, session: SessionId | None) -> None:
        """Wait until a gateway answers again, and reopen the window on its session."""
        opening = replace(self._opening, begins=Begins.OWN, session=session)
        while True:
            await asyncio.sleep(_PAUSE)
            try:
                self._socket = await _connect(self._folder, self._platform)
                await self.ask(opening)
            except NoGateway:
                continue
            return

    async def close(self) -> None:
        """Close the connection."""
        await self._socket.close()

    def locate(self, file: File) -> str:
        """Return the URI of a file on this machine; empty if it isn't in the data folder."""
        here = self._folder / file.where
        return here.as_uri() if is_kept(file.where) and here.is_file() else ""

    def kept(self, files: Sequence[File]) -> list[str]:
        """Return a line for each file: its path in the data folder, or its path on the page."""
        return [f"{file.name}: {self._place(file)}" if is_kept(file.where) else file.name for file in files]

    async def brought(self, file: File, folder: Path) -> str:
        """Copy a file to a folder under a free name; return its path. If that fails, return the original's place."""
        stem, dot, ending = Path(file.name).name.rpartition(".")
        names = chain([Path(file.name).name], (f"{stem}-{n}{dot}{ending}" for n in count(2)))
        try:
            with _free(folder, names) as copy:
                try:
                    async with _content(self._folder, file) as pieces:
                        async for piece in pieces:
                            copy.write(piece)
                except (OSError, SegueError):
                    _discard(copy)
                    raise
        except (OSError, SegueError):
            return self._place(file)
        return str(Path(copy.name).relative_to(folder))

    def _place(self, file: File) -> str:
        here = self._folder / file.where
        return str(here) if here.is_file() else f"/{file.where}/{quote(file.name)} on the page"

    def lines(self, text: str, files: Sequence[File]) -> str:
        """Append a line for each file to a text."""
        return "\n".join(filter(None, [text, *self.kept(files)]))


def _discard(half: BinaryIO) -> None:
    Path(half.name).unlink()


def _free(folder: Path, names: Iterable[str]) -> BinaryIO:
    """Create a file under the first free name."""
    for name in names:
        try:
            return (folder / name).open("xb")
        except FileExistsError:
            continue
    raise FileExistsError(str(folder))


def read_frame(text: str | bytes) -> Shown:
    """Decode a frame and remove terminal control characters, because other people wrote most of it."""
    frame: Shown = msgspec.convert(_clean(msgspec.json.decode(text)), Shown)
    return frame


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_clean(each) for each in value]
    return {key: _clean(each) for key, each in value.items()} if isinstance(value, dict) else value


@asynccontextmanager
async def running(config: Config) -> AsyncIterator[RunningGateway | None]:
    """Yield None if a gateway runs, else run one in this process, for windows only."""
    if is_served(config.data / SOCKET):
        yield None
        return
    alone = replace(config, accounts=())
    async with AsyncExitStack() as stack:
        stack.enter_context(logging_to(make_log(config.data), config.secrets))
        try:
            own = await stack.enter_async_context(gateway(alone, Listener("127.0.0.1", 0)))
        except AlreadyServed as error:
            raise NoGateway("Another gateway began just now. Try again.") from error
        yield own


async def open_client(folder: Path, request: OpenRequest, platform: str) -> "Client":
    """Open a window of a platform on a data folder's gateway. The caller closes it."""
    client = Client(await _connect(folder, platform), folder, request, platform)
    await client.ask(request)
    return client


@asynccontextmanager
async def connected(folder: Path, request: OpenRequest = _OPEN) -> AsyncIterator[Client]:
    """Open a window on a data folder's gateway, on this user's lane or a lane of its own."""
    client = Client(await _connect(folder), folder, request)
    try:
        await client.ask(request)
        yield client
    finally:
        await client.close()


async def _connect(folder: Path, platform: str = TERMINAL) -> ClientConnection:
    try:
        headers = {"Authorization": f"Bearer {token_in(folder)}", "X-Segue-User": getpass.getuser()}
        headers["X-Segue-Window"] = platform
        return await unix_connect(
            str(folder / SOCKET), "ws://localhost/live", additional_headers=headers, max_size=_LARGEST
        )
    except (OSError, InvalidHandshake) as error:
        raise _nobody(folder) from error


@asynccontextmanager
async def _content(folder: Path, file: File) -> AsyncIterator[AsyncIterator[bytes]]:
    """Stream a file from a data folder's gateway."""
    async with _calling(folder) as client:
        try:
            async with client.stream("GET", f"/{file.where}/{quote(file.name)}") as answer:
                if answer.status_code != 200:
                    raise Invalid("file", f"{file.name} isn't kept here any more", "Ask for it again.")
                yield answer.aiter_bytes()
        except httpx2.TransportError as error:
            raise _nobody(folder) from error


async def ask(folder: Path, method: str, path: str) -> httpx2.Response:
    """Call a data folder's gateway as the folder's user."""
    async with _calling(folder) as client:
        try:
            return await client.request(method, path)
        except httpx2.TransportError as error:
            raise _nobody(folder) from error


def _calling(folder: Path) -> httpx2.AsyncClient:
    if not is_served(folder / SOCKET):
        raise _nobody(folder)
    headers = {"Authorization": f"Bearer {token_in(folder)}"}
    # A socket in a private folder needs no TLS, so skip loading the certificate authorities.
    transport = httpx2.AsyncHTTPTransport(uds=str(folder / SOCKET), verify=False)
    return httpx2.AsyncClient(transport=transport, base_url="http://localhost", trust_env=False, headers=headers)


def _nobody(folder: Path) -> NoGateway:
    return NoGateway(f"No gateway answers in {folder}. Start one with `segue serve`.")
