"""What an author writes: a harness for the adapter, and the contracts to keep."""

import itertools
import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from segue_letterbox import Letterbox, Shouting

from segue.core.contracts.adapters import Accept, Adapter
from segue.core.lanes import Address, Kind
from segue.testing import Given, Seen, living
from segue.testing.contracts import AdapterContract, AgentContract


class LetterboxHarness:
    kinds = (Kind.DM, Kind.GROUP)

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count(1)

    def adapter(self) -> Letterbox:
        return Letterbox("home", self.folder)

    def deliver(self, adapter: Adapter, accept: Accept) -> AbstractAsyncContextManager[None]:
        return living(adapter, Given(accept))

    async def chat(self, kind: Kind, who: str = "Ann") -> Address:
        name = f"{kind}-{who.lower()}-{next(self._numbers)}"
        (self.folder / "out" / name).mkdir(parents=True)
        return Address("letterbox", "home", "", name)

    async def say(self, at: Address, text: str, who: str = "Ann") -> str:
        note = {"chat": at.chat, "who": who, "text": text, "kind": at.chat.partition("-")[0]}
        return self._drop(json.dumps(note))

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


class TestLetterbox(AdapterContract):
    @pytest.fixture
    def harness(self, tmp_path: Path) -> LetterboxHarness:
        return LetterboxHarness(tmp_path)


class TestShouting(AgentContract):
    @pytest.fixture
    def agent(self) -> Shouting:
        return Shouting(1)
