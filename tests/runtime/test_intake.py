"""Connections that an adapter makes: held by one replica, made again when they break, told once each way."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from segue.core.accounts import Health, Reach
from segue.core.contracts.adapters import Adapter, Intake
from segue.core.lanes import Identity
from segue.errors import Disconnected, Invalid
from segue.runtime.gateway import Gateway
from segue.runtime.intake import wait_after
from segue.testing.adapters import FakeAdapter
from segue.testing.agents import EchoAgent
from segue.testing.personas import Matrix, Signal, SignalAdapter, Slack, SlackAdapter, WhatsApp
from tests.in_process import gateway_on


class Wavering(SignalAdapter):
    """An adapter that is connected when the test says so, and keeps how far it came."""

    def __init__(self, platform: Signal) -> None:
        super().__init__(platform)
        self.tries = 0
        self.tried = asyncio.Condition()
        self.reachable = asyncio.Event()
        self.error: Exception = Disconnected("nobody answers")
        self.places: list[str] = []

    async def run(self, intake: Intake) -> None:
        self.tries += 1
        async with self.tried:
            self.tried.notify_all()
        if not self.reachable.is_set():
            raise self.error
        self.places.append(await intake.cursor.read())
        await intake.cursor.keep(f"place {self.tries}")
        await super().run(intake)

    async def fails(self, times: int) -> None:
        """Wait until it was tried so many times."""
        async with self.tried:
            await self.tried.wait_for(lambda: self.tries >= times)


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(90):
        while not so():  # noqa: ASYNC110 -- an account's health tells nobody when it changes
            await asyncio.sleep(0.001)


def running(path: Path, *adapters: FakeAdapter, host: Identity | None = None) -> AbstractAsyncContextManager[Gateway]:
    return gateway_on(path, EchoAgent(), *adapters, hosts=(host,) if host else (), lease=1.0, grace=0.1)


class Sharded(SignalAdapter):
    """An adapter with two connections, each of which keeps how far it came."""

    lines = ("one", "two")

    def __init__(self, platform: Signal) -> None:
        super().__init__(platform)
        self.places: dict[str, str] = {}

    async def run(self, intake: Intake) -> None:
        self.places[intake.line] = await intake.cursor.read()
        if intake.line == "two" and not self.places["two"]:
            await intake.cursor.keep("the place of two")
            raise Disconnected("two broke")
        intake.connected()
        await super().run(intake)


async def test_several_connections_of_an_account_are_each_held_once_and_have_a_place_each(tmp_path: Path) -> None:
    signal = Signal()
    ann, here, there = signal.person("Ann"), Sharded(signal), Sharded(signal)
    async with running(tmp_path, here) as gateway, running(tmp_path, there) as other:
        await until(lambda: {**here.places, **there.places} == {"one": "", "two": "the place of two"})
        ann.says("hello", signal.dm(ann))
        await signal.dm(ann).reads("hello")
        await until(lambda: Reach.CONNECTED in {one.accounts["signal.main"].reach for one in (gateway, other)})
        assert sorted([*here.places, *there.places]) in (["one", "two"], ["one", "two", "two"])
        await signal.settles()
    assert signal.dm(ann).replies == ["hello"]


async def test_a_connection_that_breaks_heals_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    signal = Signal()
    ann, adapter = signal.person("Ann"), Wavering(signal)
    async with running(tmp_path, adapter) as gateway:
        await adapter.fails(3)
        assert gateway.accounts == {"signal.main": Health(Reach.BROKEN, "nobody answers")}
        assert gateway.problems() == ["signal.main isn't connected: nobody answers"]
        adapter.reachable.set()
        ann.says("hello", signal.dm(ann))
        await signal.dm(ann).reads("hello")
        assert gateway.problems() == []
        assert gateway.accounts == {"signal.main": Health(Reach.CONNECTED)}
    told = [record.getMessage() for record in caplog.records if "signal.main" in record.getMessage()]
    assert told == [
        "signal.main lost its connection and is tried again: nobody answers",
        "signal.main is connected again",
    ]


class Hindered(Wavering):
    """An adapter that knows of something that doesn't work."""

    troubles: tuple[str, ...] = ()


async def test_a_trouble_is_told_beside_the_health_of_an_account_that_is_connected(tmp_path: Path) -> None:
    adapter = Hindered(Signal())
    async with running(tmp_path, adapter) as gateway:
        adapter.troubles = ("it can't join the club.", "Nor the other.")
        await adapter.fails(2)
        assert gateway.accounts["signal.main"] == Health(Reach.BROKEN, "nobody answers")
        adapter.reachable.set()
        await until(lambda: gateway.accounts["signal.main"].reach is Reach.CONNECTED)
        assert gateway.accounts["signal.main"].words == "is connected: it can't join the club. Nor the other."
        assert gateway.problems() == [], "a monitor would ring for it"
        adapter.troubles = ()
        assert gateway.accounts["signal.main"] == Health(Reach.CONNECTED)


async def test_the_place_is_kept_for_the_next_connection_whoever_makes_it(tmp_path: Path) -> None:
    signal = Signal()
    ann = signal.person("Ann")
    first, second = Wavering(signal), Wavering(signal)
    for adapter in (first, second):
        adapter.reachable.set()
        async with running(tmp_path, adapter):
            ann.says("hello", signal.dm(ann))
            await signal.settles()
    assert (first.places, second.places) == ([""], ["place 1"])


async def test_an_error_that_nobody_foresaw_shows_no_secret(tmp_path: Path) -> None:
    adapter = Wavering(Signal())
    adapter.error = ConnectionResetError("at https://example.org/bot-secret/")
    async with running(tmp_path, adapter) as gateway:
        await adapter.fails(2)
        assert gateway.problems() == ["signal.main isn't connected: ConnectionResetError, the log says more"]


async def test_only_the_host_is_told_of_trouble_by_status(tmp_path: Path) -> None:
    matrix, broken = Matrix(), Wavering(Signal())
    ann, ben = matrix.person("Ann"), matrix.person("Ben")
    host = Identity("matrix", "main", ann.shown[0])
    async with running(tmp_path, matrix.adapter(), broken, host=host):
        await broken.fails(2)
        for person in (ann, ben):
            person.says("hello", matrix.dm(person))
            await matrix.dm(person).reads("hello")
            person.says("/status", matrix.dm(person))
            await matrix.dm(person).reads_some(2)
    assert matrix.dm(ann).replies[-1].endswith("\n\nsignal.main isn't connected: nobody answers")
    assert "signal" not in matrix.dm(ben).replies[-1]


async def test_what_is_called_by_its_platform_waits_and_another_replica_says_so(tmp_path: Path) -> None:
    async with running(tmp_path, WhatsApp().adapter()) as gateway:
        await until(lambda: gateway.accounts == {"whatsapp.main": Health(Reach.CALLED)})
    signal = Signal()
    first, second = Wavering(signal), Wavering(signal)
    first.reachable.set()
    ann = signal.person("Ann")
    async with running(tmp_path, first):
        ann.says("hello", signal.dm(ann))
        await signal.dm(ann).reads("hello")
        async with running(tmp_path, second) as other:
            ann.says("again", signal.dm(ann))
            await signal.dm(ann).reads("again")
            await until(lambda: other.accounts == {"signal.main": Health(Reach.ELSEWHERE)})
            assert other.problems() == []


async def test_a_connection_that_any_replica_may_have_keeps_no_place(tmp_path: Path) -> None:
    kept: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    class Keeping(SlackAdapter):
        async def run(self, intake: Intake) -> None:
            try:
                await intake.cursor.keep(await intake.cursor.read() + "7")
            except Invalid as error:
                kept.set_result(error)
            await super().run(intake)

    adapter: Adapter = Keeping(Slack())
    assert isinstance(adapter, Keeping)
    async with running(tmp_path, adapter):
        assert "can't be kept" in str(await kept)


async def test_a_life_that_ends_by_itself_is_told_and_begun_again(tmp_path: Path) -> None:
    class Quitting(SignalAdapter):
        lives = 0

        async def run(self, intake: Intake) -> None:
            self.lives += 1
            if self.lives > 1:
                await super().run(intake)

    signal = Signal()
    ann, adapter = signal.person("Ann"), Quitting(signal)
    async with running(tmp_path, adapter) as gateway:
        await until(lambda: gateway.accounts["signal.main"].reach is Reach.BROKEN)
        assert gateway.problems() == ["signal.main isn't connected: its adapter stopped by itself"]
        ann.says("hello", signal.dm(ann))
        await signal.dm(ann).reads("hello")
        assert gateway.problems() == []


def test_it_waits_longer_each_time_until_a_connection_was_worth_the_wait() -> None:
    waits = [0.1]
    for lasted in (0.0, 0.0, 0.0, 4.0, 6.0, 0.0):
        waits.append(wait_after(waits[-1], lasted))
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 0.1, 0.2]
    # One that breaks off again and again isn't called more often than it holds.
    assert wait_after(20.0, 15.0) == 30.0
    assert wait_after(30.0, 31.0) == 0.1
