"""Where callers find the gateway: a bound socket, and uvicorn behind it in our own event loop."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.types import ASGIApp

from segue.errors import Invalid

_KEEP_ALIVE = 60
"""Seconds that an idle connection stays open: longer than those who call often pause."""
_PORT = {errno.EADDRINUSE, errno.EACCES}


class Listener:
    """A bound socket: callers may come from now on, and wait until they are served."""

    def __init__(self, host: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self.socket = socket.create_server((host, port), family=family, backlog=1024)
        except OSError as error:
            raise Invalid("port" if error.errno in _PORT else "host", *_explain(error, host, port)) from error
        self.host = f"[{host}]" if family == socket.AF_INET6 else host
        self.port: int = self.socket.getsockname()[1]

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{self.host}:{self.port}"

    def close(self) -> None:
        """Turn callers away."""
        self.socket.close()


def _explain(error: OSError, host: str, port: int) -> tuple[str, str]:
    if error.errno == errno.EADDRINUSE:
        return f"{port} is taken", "Stop what listens there, or choose another one with --port."
    if error.errno == errno.EACCES:
        return f"{port} is not for ordinary users", "Choose one above 1023 with --port."
    return f"{host!r} is not an address of this machine", "Choose one with --host, such as 127.0.0.1."


class _Uvicorn(uvicorn.Server):
    """Leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield


@asynccontextmanager
async def serving(app: ASGIApp, listener: Listener, grace: float = 10.0) -> AsyncIterator[asyncio.Task[None]]:
    """Serve until the block ends, then let calls under way finish; yields the task that serves."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=max(1, round(grace)),
    )
    server = _Uvicorn(config)
    task = asyncio.create_task(server.serve(sockets=[listener.socket]), name="http server")
    try:
        yield task
    finally:
        server.should_exit = True
        await task
