"""The Signal adapter keeps the contracts, with crabline's daemon behind it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from segue.adapters.signal import Signal
from segue.adapters.signal.daemon import Daemon
from segue.core.contracts.adapters import Accept, Accepted, Adapter, Arrived
from segue.core.lanes import Address, Kind
from segue.testing import Shelf
from segue.testing.contracts import ChangeContract, DeletionContract, QuoteContract, TypingContract
from segue.testing.harness import Given, Seen, living
from segue.testing.inbox import Inbox
from tests.servers.signal import NUMBER, PEOPLE, Between, edited, quoting, signal, with_data


class SignalHarness:
    """Lets the contracts speak on crabline's Signal."""

    kinds = (Kind.DM, Kind.GROUP)

    def __init__(self, between: Between, url: str) -> None:
        self.between = between
        self.url = url
        self.adapters: list[Signal] = []
        self.shelf = Shelf()

    def adapter(self) -> Signal:
        adapter = Signal("main", Daemon(self.url, NUMBER), NUMBER, self.shelf)
        self.adapters.append(adapter)
        return adapter

    @asynccontextmanager
    async def deliver(self, adapter: Adapter, accept: Accept) -> AsyncIterator[None]:
        async with living(adapter, Given(accept)):
            yield

    async def chat(self, kind: Kind, who: str = "Ann") -> Address:
        return Address("signal", "main", "", PEOPLE[who].uuid if kind is Kind.DM else self.between.group())

    async def say(self, at: Address, text: str, who: str = "Ann") -> str:
        return await self.between.says(text, who, _group(at))

    async def attach(self, at: Address, name: str, content: bytes, who: str = "Ann") -> str:
        self.between.files[f"id-{name}"] = content
        file = {"id": f"id-{name}", "filename": name, "contentType": "image/png", "size": len(content)}
        attached = with_data(message=None, attachments=[file])
        return await self.between.says(f"the file {name}", who, _group(at), attached)

    async def change(self, at: Address, message: str, text: str, who: str = "Ann") -> None:
        await self.between.says(text, who, _group(at), edited(message))

    async def delete(self, at: Address, message: str, who: str = "Ann") -> None:
        gone = with_data(message=None, remoteDelete={"timestamp": int(message.partition(".")[0])})
        await self.between.says("take it back", who, _group(at), gone)

    async def quote(self, at: Address, message: str, text: str, who: str = "Ann") -> str:
        return await self.between.says(text, who, _group(at), quoting(message))

    async def read(self, at: Address) -> list[Seen]:
        return self.between.read(at)

    async def redeliver(self) -> None:
        self.between.tell_again()

    async def garble(self) -> None:
        for each in ("{", "7", "[]", '{"envelope": 7}', '{"envelope": {"dataMessage": {"timestamp": "soon"}}}'):
            self.between.tell(each)
        self.between.tell({"envelope": {"dataMessage": {"timestamp": 1, "message": "by nobody"}}})

    async def nowhere(self) -> Address:
        return Address("signal", "main", "", "+0")


def _group(at: Address) -> str:
    return "" if at.chat in {someone.uuid for someone in PEOPLE.values()} else at.chat


class TestSignal(TypingContract, ChangeContract, DeletionContract, QuoteContract):
    @pytest.fixture
    async def harness(self, tmp_path: Path) -> AsyncIterator[SignalHarness]:
        async with signal(tmp_path) as (between, url):
            harness = SignalHarness(between, url)
            yield harness
            for adapter in harness.adapters:
                await adapter.close()

    async def test_what_was_accepted_but_not_acknowledged_comes_again(self, harness: SignalHarness) -> None:  # type: ignore[override]
        """signal-cli has no acknowledgement: what it told it tells no second time. What it didn't yet, comes."""
        first, second = Inbox(), Inbox()
        at = await harness.chat(harness.kinds[0])

        async def killed(arrived: Arrived) -> Accepted:
            await first.accept(arrived)
            await asyncio.Event().wait()
            return Accepted.NEW

        async with harness.deliver(harness.adapter(), killed):
            await harness.say(at, "hold on to this")
            await first.gets("hold on to this")
        await harness.between.left()
        await harness.say(at, "while nobody listens")
        async with harness.deliver(harness.adapter(), second.accept):
            await second.gets("while nobody listens")
        assert (first.texts, second.texts) == (["hold on to this"], ["while nobody listens"])
