"""What an author writes: a harness for the adapter, and the contracts to keep."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from segue_letterbox import HEADER, CalledLetterbox, Letterbox, Shouting
from starlette.types import ASGIApp

from segue.core.contracts.adapters import Accept, Adapter
from segue.core.lanes import Address, Kind
from segue.core.values import Secret
from segue.testing import Given, Seen, Shelf, living, post
from segue.testing.contracts import AdapterContract, AgentContract, WebhookContract


class LetterboxHarness:
    kinds = (Kind.DM, Kind.GROUP)

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shelf = Shelf()
        self._numbers = itertools.count(1)

    def adapter(self) -> Letterbox:
        return Letterbox("home", self.folder, self.shelf)

    def deliver(self, adapter: Adapter, accept: Accept) -> AbstractAsyncContextManager[None]:
        return living(adapter, Given(accept))

    async def chat(self, kind: Kind, who: str = "Ann") -> Address:
        name = f"{kind}-{who.lower()}-{next(self._numbers)}"
        (self.folder / "out" / name).mkdir(parents=True)
        return Address("letterbox", "home", "", name)

    async def say(self, at: Address, text: str, who: str = "Ann", file: str = "") -> str:
        note = {"chat": at.chat, "who": who, "text": text, "kind": at.chat.partition("-")[0], "file": file}
        return self._drop(json.dumps(note))

    async def attach(self, at: Address, name: str, content: bytes, who: str = "Ann") -> str:
        (self.folder / "files").mkdir(exist_ok=True)
        (self.folder / "files" / name).write_bytes(content)
        return await self.say(at, "", who, name)

    async def read(self, at: Address) -> list[Seen]:
        return [Seen(file.stem, file.read_text()) for file in sorted((self.folder / "out" / at.chat).glob("*.txt"))]

    async def redeliver(self) -> None:
        for file in (self.folder / "done").iterdir():
            file.rename(self.folder / "in" / file.name)

    async def garble(self) -> None:
        for text in ("{", "[]", '{"chat": 7}'):
            self._drop(text)

    async def nowhere(self) -> Address:
        return Address("letterbox", "home", "", "../done")

    def _drop(self, text: str) -> str:
        name = f"{next(self._numbers):06}"
        (self.folder / f"{name}.draft").write_text(text)
        (self.folder / "in").mkdir(exist_ok=True)
        (self.folder / f"{name}.draft").rename(self.folder / "in" / f"{name}.json")
        return name


class CalledHarness(LetterboxHarness):
    """The same letterbox, called instead of looking into its folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._app: ASGIApp | None = None
        self._waiting: list[bytes] = []
        self._told: list[bytes] = []

    def adapter(self) -> CalledLetterbox:
        return CalledLetterbox("home", self.folder, self.shelf, Secret("s"))

    @asynccontextmanager
    async def deliver(self, adapter: Adapter, accept: Accept) -> AsyncIterator[None]:
        assert isinstance(adapter, CalledLetterbox)
        self._app = adapter.webhook(accept)
        calling = asyncio.create_task(self._call())
        try:
            yield
        finally:
            calling.cancel()

    async def _call(self) -> None:
        while True:
            while self._waiting and await self._post(self._waiting[0], {HEADER: "s"}) == 200:
                self._told.append(self._waiting.pop(0))
            await asyncio.sleep(0.001)

    async def _post(self, body: bytes, headers: dict[str, str]) -> int:
        assert self._app is not None
        return (await post(self._app, "/in/letterbox/home", body, headers)).status

    async def redeliver(self) -> None:
        self._waiting += self._told

    async def forge(self, at: Address, text: str) -> list[int]:
        body = json.dumps({"chat": at.chat, "who": "eve", "text": text, "id": "x"}).encode()
        return [await self._post(body, headers) for headers in ({}, {HEADER: "guess"})]

    def _drop(self, text: str) -> str:
        name = f"{next(self._numbers):06}"
        self._waiting.append(text.replace('{"chat"', f'{{"id": "{name}", "chat"', 1).encode())
        return name


class TestLetterbox(AdapterContract):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> LetterboxHarness:
        return LetterboxHarness(tmp_path)


class TestCalledLetterbox(WebhookContract):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> CalledHarness:
        return CalledHarness(tmp_path)


class TestShouting(AgentContract):
    @pytest.fixture
    def agent(self) -> Shouting:
        return Shouting(1)
