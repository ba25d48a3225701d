"""The HTTP adapter keeps the contracts, with a platform of one's own on loopback behind it."""

import asyncio
import itertools
import json
import time
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from segue.adapters.http import Http, HttpAccount
from segue.core.contracts.adapters import Accept, Adapter, TakesWebhooks
from segue.core.lanes import Address, Kind
from segue.core.values import Secret
from segue.runtime.server.app import Mounted
from segue.runtime.server.listeners import Listener, serving
from segue.testing import Shelf
from segue.testing.asgi import Application, post
from segue.testing.contracts import (
    ChangeContract,
    DeletionContract,
    EditContract,
    QuoteContract,
    ThreadContract,
    TypingContract,
    WebhookContract,
    WhisperContract,
)
from segue.testing.harness import Seen
from segue.testing.waits import Changes
from segue.testing.wire import Feed
from tests.adapters.platform import signed

SECRET = "s3cret-of-alpha"


class Village:
    """A platform behind the HTTP adapter: it keeps what it is sent, and gives the same answer to the same key."""

    def __init__(self) -> None:
        self.chats: set[str] = set()
        self.threads: set[str] = {""}
        self.seen: dict[str, list[Seen]] = {}
        self.only: dict[str, str] = {}
        self._answers: dict[str, dict[str, str]] = {}
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Take a call."""
        call = json.loads(await Request(scope, receive).body())
        await self._answer(call)(scope, receive, send)

    def _answer(self, call: dict[str, Any]) -> Response:
        address = Address(**call["address"])
        if address.chat not in self.chats:
            return JSONResponse({"problem": "no such chat"}, 404)
        if call["key"] not in self._answers:
            self._answers[call["key"]] = self._do(call, address)
        return JSONResponse(self._answers[call["key"]])

    def _do(self, call: dict[str, Any], address: Address) -> dict[str, str]:
        seen = self.seen.setdefault(address.key, [])
        id = f"v{next(self._numbers)}"
        if call["kind"] == "message":
            seen.append(Seen(id, call["text"]))
            self.only[id] = call["only"]
        if call["kind"] == "edit":
            seen[:] = [Seen(s.message, call["text"]) if s.message == call["message"] else s for s in seen]
        if call["kind"] == "open_thread":
            self.threads.add(id)
            return {"thread": id}
        return {"id": id}


class HttpHarness:
    """Lets the contracts speak through the HTTP adapter."""

    kinds = (Kind.DM, Kind.GROUP)

    def __init__(self, keys: HttpAccount, village: Village) -> None:
        self.adapters: list[Http] = []
        self._keys = keys
        self._village = village
        self._feed = Feed(Changes())
        self._told: list[bytes] = []
        self._kinds: dict[str, Kind] = {}
        self._numbers = itertools.count(1)
        self._app: Application | None = None
        self.shelf = Shelf()

    def adapter(self) -> Http:
        adapter = self._keys.adapter("alpha", self.shelf)
        self.adapters.append(adapter)
        return adapter

    @asynccontextmanager
    async def deliver(self, adapter: Adapter, accept: Accept) -> AsyncIterator[None]:
        assert isinstance(adapter, TakesWebhooks)
        self._app = adapter.webhook(accept)
        calling = asyncio.create_task(self._call(self._app))
        try:
            yield
        finally:
            calling.cancel()
            await asyncio.wait([calling])

    async def _call(self, app: Application) -> None:
        async for parcel in self._feed.parcels():
            status = 503
            while status == 503:
                status = (await post(app, "/", parcel.body, signed(SECRET, parcel.body, time.time()))).status
            self._feed.acknowledge(parcel)

    async def chat(self, kind: Kind, who: str = "Ann") -> Address:
        chat = f"{kind}:{who}/{next(self._numbers)}"
        self._village.chats.add(chat)
        self._kinds[chat] = kind
        return Address("http", "alpha", "", chat)

    async def attach(self, at: Address, name: str, content: bytes, who: str = "Ann") -> str:
        return await self.say(at, "", who, files=[{"name": name, "data": b64encode(content).decode()}])

    async def say(self, at: Address, text: str, who: str = "Ann", **more: object) -> str:
        assert at.thread in self._village.threads, "nobody can write in a thread that isn't there"
        id = f"m{next(self._numbers)}"
        self._tell(self._body(at, text, who, id=id, **more))
        return id

    async def change(self, at: Address, message: str, text: str, who: str = "Ann") -> None:
        await self.say(at, text, who, edits=message)

    async def quote(self, at: Address, message: str, text: str, who: str = "Ann") -> str:
        return await self.say(at, text, who, quotes=message)

    async def read(self, at: Address) -> list[Seen]:
        return self._village.seen.get(at.key, [])

    async def read_as(self, at: Address, who: str) -> list[Seen]:
        return [seen for seen in await self.read(at) if self._village.only[seen.message] in ("", f"u-{who}")]

    async def delete(self, at: Address, message: str, who: str = "Ann") -> None:
        await self.say(at, "", who, deletes=message)

    async def redeliver(self) -> None:
        for body in self._told:
            self._feed.put(body, "")

    async def garble(self) -> None:
        for body in (b"{", b"[]", b'{"id": 7}', b"\xff", b'{"id": "m", "chat_kind": "dm", "text": ""}'):
            self._feed.put(body, "")

    async def forge(self, at: Address, text: str) -> list[int]:
        assert self._app is not None
        body = self._body(at, text, "Ann", id="forged")
        now = time.time()
        headers: list[dict[str, str]] = [
            {},
            signed("a guess", body, now),
            signed(SECRET, self._told[-1], now),
            signed(SECRET, body, now - 301),
        ]
        return [(await post(self._app, "/", body, each)).status for each in headers]

    async def nowhere(self) -> Address:
        return Address("http", "alpha", "", "404")

    def _body(self, at: Address, text: str, who: str, **more: object) -> bytes:
        person = {"id": f"u-{who}", "name": who}
        place = {"chat": at.chat, "thread": at.thread, "chat_kind": self._kinds[at.chat]}
        return json.dumps({**place, "person": person, "text": text, **more}).encode()

    def _tell(self, body: bytes) -> None:
        self._told.append(body)
        self._feed.put(body, "")


@asynccontextmanager
async def harness_for(**abilities: bool) -> AsyncIterator[HttpHarness]:
    village, listener = Village(), Listener("127.0.0.1", 0)
    async with serving(Mounted(village), listener):
        account = msgspec.structs.replace(HttpAccount(Secret(SECRET), f"{listener.url}/out"), **abilities)
        harness = HttpHarness(account, village)
        yield harness
        for adapter in harness.adapters:
            await adapter.close()


class TestHttp(WebhookContract, WhisperContract, ChangeContract, DeletionContract, QuoteContract):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[HttpHarness]:
        async with harness_for() as harness:
            yield harness


class TestHttpWithThreadsAndEdits(
    ThreadContract,
    EditContract,
    TypingContract,
    WebhookContract,
    WhisperContract,
    ChangeContract,
    DeletionContract,
    QuoteContract,
):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[HttpHarness]:
        async with harness_for(opens_threads=True, edits=True) as harness:
            yield harness
