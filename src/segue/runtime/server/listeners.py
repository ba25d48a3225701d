"""The gateway's listeners: a bound socket, and uvicorn behind it in our own event loop."""

import asyncio
import contextlib
import errno
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, cast

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from segue.errors import Invalid
from segue.runtime.server.callers import Caller, CallerLimits, Callers, accept
from segue.runtime.server.proxies import Proxies

log = logging.getLogger(__name__)
_KEEP_ALIVE = 60
"""Seconds that an idle connection stays open: longer than those who call often pause."""
LARGEST_FRAME = 4 * 1024 * 1024
_LONGEST = 80
"""Characters of a command line that are shown."""
_NEAR = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 -- listened on, and called by no name
_UNDER_WAY = 0.01
"""Seconds between two checks for calls under way while the server stops."""
_PORT = {errno.EADDRINUSE, errno.EACCES}


class Listener:
    """A bound socket: callers may come from now on, and wait until they are served."""

    def __init__(self, host: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            bound = socket.create_server((host, port), family=family, backlog=1024)
        except OSError as error:
            raise Invalid("port" if error.errno in _PORT else "host", *_explain(error, host, port)) from error
        # asyncio sets TCP_NODELAY only where the protocol is named; without, a body waits 40 ms behind its head.
        self.socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, bound.detach())
        self.host = f"[{host}]" if family == socket.AF_INET6 else host
        self.port: int = self.socket.getsockname()[1]

    @property
    def url(self) -> str:
        """The address on which it listens."""
        return f"http://{self.host}:{self.port}"

    @property
    def near(self) -> str:
        """The address at which programs of this machine find it."""
        return f"http://{_NEAR.get(self.host, self.host)}:{self.port}"

    def close(self) -> None:
        """Turn callers away."""
        self.socket.close()


class AlreadyServed(Invalid):
    """Another gateway serves this data folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__("data folder", f"another gateway serves {folder}", "Use that one, or stop it first.")


class LocalListener:
    """A socket in the data folder, for this user's own terminals."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if path.exists():
            if is_served(path):
                raise AlreadyServed(path.parent)
            path.unlink()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        mask = os.umask(0o177)
        try:
            self.socket.bind(str(path))
        except OSError as error:
            problem = f"{path} can't be listened at ({error.strerror or error})"
            raise Invalid("data folder", problem, "Choose a shorter or another one with SEGUE_HOME.") from error
        finally:
            os.umask(mask)
        self.socket.listen(128)

    def close(self) -> None:
        """Turn callers away."""
        self.socket.close()
        self._path.unlink(missing_ok=True)


def is_served(path: Path) -> bool:
    """Whether a gateway answers at a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        try:
            caller.connect(str(path))
        except OSError:
            return False
    return True


def listens_at(port: int) -> str:
    """The program that listens at a port, as far as this user may know it."""
    listening = {
        fields[9]
        for table in ("tcp", "tcp6")
        for line in _lines(Path(f"/proc/net/{table}"))
        if (fields := line.split())[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port
    }
    wanted = {f"socket:[{inode}]" for inode in listening}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(str(open_file.readlink()) in wanted for open_file in (process / "fd").iterdir()):
                words = (process / "cmdline").read_text(errors="replace").replace("\0", " ").strip()
                return f"process {process.name} (`{words[:_LONGEST]}`)"
    return "what listens there"


def _lines(table: Path) -> list[str]:
    return table.read_text().splitlines()[1:] if table.exists() else []


def _explain(error: OSError, host: str, port: int) -> tuple[str, str]:
    if error.errno == errno.EADDRINUSE:
        return f"{port} is taken", f"Stop {listens_at(port)}, or choose another one with --port."
    if error.errno == errno.EACCES:
        return f"{port} is not for ordinary users", "Choose one above 1023 with --port."
    return f"{host!r} is not an address of this machine", "Choose one with --host, such as 127.0.0.1."


class _Guarded(H11Protocol):
    """A connection whose caller must send and read in time."""

    caller: Caller

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.caller.transport = transport
        self.caller.wait(self.caller.limits.head)

    def data_received(self, data: bytes) -> None:
        before = self.conn.their_state
        super().data_received(data)
        now = self.conn.their_state
        if self.transport.get_protocol() is not self:
            return  # It is a WebSocket's from here on, which has a deadline of its own.
        if now is h11.SEND_BODY and before is not now:
            self.caller.wait(self.caller.limits.body)
        elif now is h11.IDLE and not self.caller.waits:
            self.caller.wait(self.caller.limits.head)
        elif now not in {h11.IDLE, h11.SEND_BODY}:
            self.caller.heard()

    def handle_events(self) -> None:
        super().handle_events()
        if self.scope is not None:
            self.caller.vouched(self.scope)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self.caller.wait(self.caller.limits.stalled)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.caller.paused()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.caller.resumed()

    def connection_lost(self, exc: Exception | None) -> None:
        self.caller.lost()
        super().connection_lost(exc)


class _GuardedSocket(WebSocketsSansIOProtocol):
    """A WebSocket whose caller must prove in time who they are, and read."""

    caller: Caller

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # The transport is still that of the call which became this.
        self.caller = cast("_Guarded", self.transport.get_protocol()).caller
        self.caller.prove_within(self.caller.limits.head)

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if hasattr(self, "scope"):
            self.caller.vouched(self.scope)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.caller.paused()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.caller.resumed()

    def connection_lost(self, exc: Exception | None) -> None:
        self.caller.lost()
        super().connection_lost(exc)


class _Uvicorn(uvicorn.Server):
    """Leaves signals to its caller, and stops at once where uvicorn would sleep up to 0.2 s."""

    def __init__(self, config: uvicorn.Config, callers: Callers) -> None:
        super().__init__(config)
        self._stopping = asyncio.Event()
        self._callers = callers
        self._accepting: list[asyncio.Task[None]] = []
        self._connecting: set[asyncio.Task[Any]] = set()

    def stop(self) -> None:
        """Begin to stop."""
        self.should_exit = True
        self._stopping.set()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield

    async def main_loop(self) -> None:
        """Renew the date of the answers each second until the server is stopped."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._stopping.wait()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; connections are accepted as there is room for them."""
        for listening in sockets or []:
            listening.settimeout(0)
            accepting = accept(listening, self._callers, self._serve_one)
            self._accepting.append(asyncio.create_task(accepting, name="accepting connections"))
        self.started = True

    def _serve_one(self, connection: socket.socket, caller: Caller) -> None:
        def made() -> asyncio.Protocol:
            protocol = _Guarded(self.config, self.server_state, {})
            protocol.caller = caller
            return protocol

        connecting = asyncio.create_task(_connect(connection, caller, made))
        self._connecting.add(connecting)
        connecting.add_done_callback(self._connecting.discard)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, let calls under way finish within the grace, cancel the rest."""
        for accepting in self._accepting:
            accepting.cancel()
        for ended in await asyncio.gather(*self._accepting, return_exceptions=True):
            if isinstance(ended, Exception):
                log.error("connections could no longer be accepted", exc_info=ended)
        for listening in sockets or []:
            listening.close()
        await asyncio.gather(*self._connecting)
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await asyncio.sleep(0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 -- uvicorn has no event
                    await asyncio.sleep(_UNDER_WAY)
        if late := self.server_state.tasks:
            log.warning("calls under way cancelled, they outlasted the grace of shutdown: %d", len(late))
        for call in late:
            call.cancel()


async def _connect(connection: socket.socket, caller: Caller, made: Callable[[], asyncio.Protocol]) -> None:
    try:
        await asyncio.get_running_loop().connect_accepted_socket(made, connection)
    except OSError as error:
        log.debug("a connection was gone before it was served: %s", error)
        connection.close()
        caller.lost()


@asynccontextmanager
async def serving(
    app: ASGIApp,
    listener: Listener | LocalListener,
    grace: float = 10.0,
    patience: CallerLimits | None = None,
    proxies: Proxies | None = None,
) -> AsyncIterator[asyncio.Task[None]]:
    """Serve until the block ends, then let calls under way finish; yields the task that serves."""
    config = uvicorn.Config(
        app,
        http=_Guarded,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws=_GuardedSocket,
        ws_max_size=LARGEST_FRAME,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, round(grace)),
    )
    server = _Uvicorn(config, Callers(patience or CallerLimits(), proxies or Proxies()))
    task = asyncio.create_task(server.serve(sockets=[listener.socket]), name="http server")
    try:
        yield task
    finally:
        server.stop()
        await task
