"""A window costs what is new, however long its session is: rows and bytes are counted, not timed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from copy import copy
from pathlib import Path
from typing import ParamSpec, TypeVar

from segue import AGENT
from segue.core.contracts.database import Driver, Transaction
from segue.core.moves import Renew
from segue.core.windows import HOSTS
from segue.runtime.windows.frames import (
    AnsweredFrame,
    EarlierFrame,
    OpenRequest,
    SayRequest,
    Shown,
    TranscriptFrame,
    WaitingFrame,
    encode,
)
from segue.runtime.windows.window import Seat, Window
from segue.store import Store
from segue.testing.agents import EchoAgent
from segue.testing.waits import Changes
from tests.runtime.house import House, house

P = ParamSpec("P")
T = TypeVar("T")
LONG, SHORT = 20_000, 10
PAGE = 8
WORDS = "a good cup of tea"


class Counting:
    """A driver that counts the rows which come back."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.rows = 0
        self.hint, self.listen, self.close = driver.hint, driver.listen, driver.close
        self.copies, self.scrub, self.damage = driver.copies, driver.scrub, driver.damage

    async def read(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._driver.read(self._counted(transaction), *args, **kwargs)

    async def write(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._driver.write(self._counted(transaction), *args, **kwargs)

    def _counted(self, transaction: Callable[P, Transaction[T]]) -> Callable[P, Transaction[T]]:
        def counted(*args: P.args, **kwargs: P.kwargs) -> Transaction[T]:
            work = transaction(*args, **kwargs)
            try:
                statement = next(work)
                while True:
                    rows = yield statement
                    self.rows += len(rows)
                    statement = work.send(rows)
            except StopIteration as done:
                value: T = done.value
                return value

        return counted


class Looker:
    """A window without a socket."""

    def __init__(self, here: House) -> None:
        gateway = copy(here.gateway)
        self.driver = Counting(here.gateway.store.driver)
        gateway.store = Store(self.driver)
        self.seen: list[Shown] = []
        self.bytes = 0
        self._changes = Changes()
        self.window = Window(gateway, here.terminals, Seat("ann", "ann"), self._send, lambda: 1.0)

    async def _send(self, frame: Shown) -> None:
        self.seen.append(frame)
        self.bytes += len(encode(frame))
        self._changes.tell()

    async def sees(self, so: Callable[[Shown], object]) -> Shown:
        """Wait for a frame that is so."""
        return await self._changes.until(
            lambda: next((frame for frame in self.seen if so(frame)), None), lambda: f"never; {self.seen[-3:]}"
        )


@asynccontextmanager
async def looking(path: Path, length: int) -> AsyncIterator[Looker]:
    """A window on a session with so many entries."""
    async with house(path, EchoAgent()) as here:
        store = here.gateway.store
        host = await store.person(HOSTS[0])
        session = store.new_session_id()
        looker, asked = Looker(here), OpenRequest(page=PAGE)
        window = await looker.window.open(asked)
        await store.move(Renew(window.lane, session), host)
        await store.say(session, AGENT, *(f"{WORDS} {n:05}" for n in range(length)))
        showing = asyncio.create_task(window.show(asked))
        await looker.sees(lambda frame: isinstance(frame, WaitingFrame))
        try:
            yield looker
        finally:
            showing.cancel()


async def costs(path: Path, length: int) -> tuple[int, int, int, int]:
    """The rows and bytes of opening a window, and of five messages in it."""
    async with looking(path, length) as looker:
        opened = looker.driver.rows, looker.bytes
        for n in range(5):
            looker.seen.clear()
            await looker.window.say(SayRequest(f"m{n}", "tea"))
            await looker.sees(lambda frame: isinstance(frame, AnsweredFrame))
        return *opened, looker.driver.rows - opened[0], looker.bytes - opened[1]


async def test_a_window_on_a_long_session_costs_what_one_on_a_short_session_does(tmp_path: Path) -> None:
    for name in ("short", "long"):
        (tmp_path / name).mkdir()
    short, long = await costs(tmp_path / "short", SHORT), await costs(tmp_path / "long", LONG)
    names = ("rows to open", "bytes to open", "rows of messages", "bytes of messages")
    assert {name: (a, b) for name, a, b in zip(names, short, long, strict=True) if b > 2 * a} == {}


async def test_more_is_shown_upward_until_there_is_no_more(tmp_path: Path) -> None:
    async with looking(tmp_path, 20) as looker:
        [opened] = [frame for frame in looker.seen if isinstance(frame, TranscriptFrame)]
        texts, earlier = [entry.text[-2:] for entry in opened.entries], opened.earlier
        assert texts == [f"{n:02}" for n in range(12, 20)]
        while earlier is not None:
            looker.seen.clear()
            await looker.window.earlier(earlier)
            [page] = [frame for frame in looker.seen if isinstance(frame, EarlierFrame)]
            texts, earlier = [*(entry.text[-2:] for entry in page.entries), *texts], page.earlier
        assert texts == [f"{n:02}" for n in range(20)]
        looker.seen.clear()
        assert opened.earlier is not None
        await looker.window.earlier(opened.earlier)
        assert looker.seen == [], "a cursor that was used leads nowhere"
