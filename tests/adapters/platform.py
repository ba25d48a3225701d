"""A platform of one's own behind the HTTP adapter: a real server on loopback that records every call."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from segue.runtime.server.app import Mounted
from segue.runtime.server.listeners import Listener, serving


class Platform:
    """What was called, and what is answered next."""

    def __init__(self) -> None:
        self.url = ""
        self.gateway = ""
        """Where a gateway takes in what is said here, if one runs."""
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.called = asyncio.Event()
        self.answer: Response = JSONResponse({"id": "m1", "thread": "t1"})

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.bodies]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        self.bodies.append(await request.body())
        self.headers.append(dict(request.headers))
        self.called.set()
        await self.answer(scope, receive, send)


@asynccontextmanager
async def platform() -> AsyncIterator[Platform]:
    """A platform that runs until the block ends."""
    here, listener = Platform(), Listener("127.0.0.1", 0)
    here.url = f"{listener.url}/out"
    async with serving(Mounted(here), listener):
        yield here


def signed(secret: str, body: bytes, at: float) -> dict[str, str]:
    """The headers of a call, made from the documentation alone."""
    digest = hmac.new(secret.encode(), f"{int(at)}.".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Segue-Timestamp": str(int(at)), "X-Segue-Signature": f"v1={digest}"}
