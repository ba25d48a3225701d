"""Everything fails: each adapter's verb, each change of each loop and each file operation raises for a while.

Meanwhile the gateway stays up and reports it, a bystander on another account is answered, and what was waiting is done
once it works again.
"""

import asyncio
import fcntl
import io
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

from msgspec.structs import replace

from segue.changes.forgetting import cleaning
from segue.core.contracts.agents import Progress, Work
from segue.core.contracts.database import Driver, Transaction
from segue.core.lanes import Address, Kind, Lane, Place
from segue.core.messages import Arrival, Delivery
from segue.core.people import UNBOUNDED
from segue.core.settings import AccountSettings, GatewaySettings, Retention, Streams
from segue.errors import StoreError
from segue.runtime.files.folder import Folder
from segue.runtime.gateway import Gateway
from segue.store import Store, open_driver
from segue.testing import HandClock, ScriptedAgent
from segue.testing.agents import Step, Uses
from segue.testing.agents import said as words_of
from segue.testing.waits import PATIENCE
from tests.drills.planting import Bug, planted
from tests.drills.room import ACCOUNT, PLATFORM, Wall, said
from tests.today import file_of_today

P = ParamSpec("P")
T = TypeVar("T")

CALM = "beta"
TIMES = 2
"""Calls in a row that fail."""
VERBS = ("delete", "edit", "grow", "open_thread", "rename", "run", "send", "start_link", "typing")
REPORTED = frozenset(VERBS) - {"run"}
"""The verbs that health has to name; an account whose `run` fails is one that isn't connected."""
FILES: tuple[tuple[Any, str], ...] = (
    *((os, name) for name in ("open", "unlink", "replace", "mkdir", "stat", "scandir", "utime", "fsync")),
    (io, "open"),
    (fcntl, "flock"),
)
ERRORS: tuple[type[Exception], ...] = (KeyError, OSError)


class Fault(NamedTuple):
    """One thing that fails."""

    kind: str
    name: str
    error: type[Exception]


def faults(changes: Iterable[str] = ()) -> list[Fault]:
    """Everything that can fail; changes are known from a run in which nothing does."""
    names = [*(("verb", name) for name in VERBS), *(("change", name) for name in changes)]
    names += [("file", f"{owner.__name__}.{name}") for owner, name in FILES]
    return [Fault(kind, name, error) for kind, name in names for error in ERRORS]


def run(chosen: Sequence[Fault] = (), bug: Bug = Bug.NONE, patience: float = PATIENCE) -> list[str]:
    """Let each of these fail in a gateway of its own, or everything; returns what is wrong."""
    with planted(*bug.patches):
        if not chosen:
            quiet = _Stage(None, patience)
            asyncio.run(quiet.play())
            if quiet.wrong:
                return quiet.wrong
            chosen = faults(sorted(quiet.changes))
        wrong = []
        for fault in chosen:
            stage = _Stage(fault, patience)
            asyncio.run(stage.play())
            name = f"{fault.kind} {fault.name}, {fault.error.__name__}"
            wrong += [f"{name}: {each}" for each in stage.wrong]
    return wrong


class _Shaky(Wall):
    """A platform whose adapter has a bug in one verb."""

    def __init__(self, fails: Callable[[str, str], None]) -> None:
        super().__init__(lambda _what, _of: None)
        self._fails = fails

    async def run(self, intake: Any) -> None:
        self._fails("verb", "run")
        await super().run(intake)

    async def send(self, delivery: Delivery) -> str:
        self._fails("verb", "send")
        return await super().send(delivery)

    async def edit(self, delivery: Delivery) -> None:
        self._fails("verb", "edit")
        self.posts[delivery.key] = delivery

    async def grow(self, delivery: Delivery, steps: Sequence[str]) -> bool:
        del delivery, steps
        self._fails("verb", "grow")
        return False

    async def typing(self, address: Address) -> None:
        del address
        self._fails("verb", "typing")

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        del title
        self._fails("verb", "open_thread")
        return replace(parent, thread=key)

    async def rename(self, thread: Address, title: str) -> None:
        del thread, title
        self._fails("verb", "rename")

    async def delete(self, address: Address, message: str) -> None:
        del address
        self._fails("verb", "delete")
        self.posts.pop(message, None)

    async def start_link(self, code: str) -> str:
        self._fails("verb", "start_link")
        return f"wall:{code}"


class _Calm(Wall):
    account = CALM


class _Tapped:
    """A database whose changes fail, when a loop makes them."""

    def __init__(self, driver: Driver, calls: Callable[[str], None]) -> None:
        self._driver = driver
        self._calls = calls
        self.hint, self.listen, self.close = driver.hint, driver.listen, driver.close
        self.copies, self.scrub, self.damage = driver.copies, driver.scrub, driver.damage

    async def write(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        self._calls(_name(transaction))
        return await self._driver.write(transaction, *args, **kwargs)

    async def read(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        self._calls(_name(transaction))
        return await self._driver.read(transaction, *args, **kwargs)


def _name(transaction: Any) -> str:
    return f"{transaction.__module__.removeprefix('segue.changes.')}.{transaction.__qualname__}"


class _Errors(logging.Handler):
    """Whether anything was logged as a warning or worse."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


class _Stage:
    """One gateway in which one thing fails."""

    def __init__(self, fault: Fault | None, patience: float) -> None:
        self._fault = fault
        self._patience = patience
        self._left = TIMES if fault else 0
        self._loops: set[str] = set()
        self._data = ""
        self._shaky, self._calm = _Shaky(self._fails), _Calm(lambda _what, _of: None)
        self._clock = HandClock(time.time())
        self.changes: set[str] = set()
        """The changes that loops made."""
        self.wrong: list[str] = []
        self._problems: set[str] = set()

    async def play(self) -> None:
        """Let it happen."""
        errors = _Errors()
        logging.getLogger().addHandler(errors)
        try:
            with tempfile.TemporaryDirectory(prefix="segue-failing-") as scratch:
                await self._in(Path(scratch))
        finally:
            logging.getLogger().removeHandler(errors)
        if self._fault and self._left < TIMES and not (errors.lines or self._problems):
            self.wrong.append("nobody was told")
        if self._fault and self._left == TIMES:
            self.wrong.append("it was never called")
        elif (
            self._fault
            and self._fault.name in REPORTED
            and not any("fails and is retried" in problem for problem in self._problems)
        ):
            self.wrong.append("health didn't name it")

    async def _in(self, scratch: Path) -> None:
        data = scratch / "data"
        self._data = str(data)
        _orphan(data)
        driver = _Tapped(await open_driver(file_of_today(scratch / "segue.db")), self._called)
        public = AccountSettings(public=True, streams=Streams.LIVE)
        settings = GatewaySettings(
            limits=UNBOUNDED,
            hosts=(said("room", "x").speaker.identity,),
            accounts={(PLATFORM, ACCOUNT): public, (PLATFORM, CALM): public},
            poll=0.05,
            lease=2.0,
            grace=1.0,
            data=self._data,
            retention=Retention(days=400),
        )
        async with Store(driver) as store:
            agent = ScriptedAgent(otherwise=_script)
            adapters = [self._shaky, self._calm]
            gateway = Gateway(store, agent, adapters, settings, clock=self._clock, files=Folder(data))
            self._loops = {loop.name for loop in gateway._loops()}
            with self._failing_files():
                async with gateway:
                    await self._through(gateway, store)

    async def _through(self, gateway: Gateway, store: Store) -> None:
        await self._story(gateway)
        await self._until("the bystander was answered", gateway, lambda: self._calm.answers("calm-1"))
        await self._until("work was done", gateway, lambda: "exchange.schedules.keep" in self.changes)
        if self._fault:
            await self._until("it failed", gateway, lambda: self._left < TIMES)
        else:
            await self._until("it beat", gateway, lambda: "exchange.replicas.beat" in self.changes)
        if gateway._main is None or gateway._main.done():
            self.wrong.append("the gateway ended")
            return
        await self._until("somebody was answered afterwards", gateway, lambda: self._shaky.answers("later-1"))
        try:
            async with asyncio.timeout(self._patience):
                while await store.driver.read(cleaning.to_clean, 1):
                    self._problems |= set(gateway.problems())
                    await asyncio.sleep(0.02)
        except TimeoutError:
            self.wrong.append(f"never: it was cleaned up; {gateway.problems()}")

    async def _story(self, gateway: Gateway) -> None:
        """Do all that makes the adapter's verbs, the loops and the files work."""
        await self._say(gateway, said("room", "one", "hello"))
        await self._until("somebody was answered", gateway, lambda: self._shaky.answers("one"))
        await self._say(gateway, said("room", "two", "start a thread"))
        await self._until("a thread was started", gateway, lambda: self._shaky.answers("two"))
        await self._say(gateway, said("room", "three", "/schedule in 2h make tea --to local"))
        address = Address(PLATFORM, CALM, chat="calm")
        calm = said("calm", "calm-1")
        speaker = replace(calm.speaker, identity=replace(calm.speaker.identity, account=CALM))
        await self._say(gateway, replace(calm, place=Place(address, Kind.DM), speaker=speaker))
        if self._fault is None or self._fault.name != "open_thread":
            await self._until("a thread was opened", gateway, self._threads)
        for n, thread in enumerate(self._threads()):
            arrival = said("room", f"title-{n}", "/title Kittens")
            await self._say(gateway, replace(arrival, place=Place(thread, Kind.DM)))
        await self._say(gateway, replace(said("room", "forget", "/forget"), quotes="one"))
        await self._say(gateway, said("room", "yes", "/yes"))
        self._clock.passes(3 * 3600.0)
        lane = Lane(Address(PLATFORM, ACCOUNT, chat="room"))
        person = await gateway.store.person(said("room", "x").speaker.identity)
        await gateway.invite(lane, person)
        await self._say(gateway, said("later", "later-1"))

    def _threads(self) -> set[Address]:
        return {post.address for post in self._shaky.posts.values() if post.address.thread}

    async def _say(self, gateway: Gateway, arrival: Arrival) -> None:
        async with asyncio.timeout(self._patience):
            while True:
                try:
                    await gateway.accept(arrival)
                except StoreError:
                    await asyncio.sleep(0.01)
                else:
                    break
        self._problems |= set(gateway.problems())

    async def _until(self, what: str, gateway: Gateway, so: Callable[[], object]) -> None:
        try:
            async with asyncio.timeout(self._patience):
                while not so():
                    self._problems |= set(gateway.problems())
                    await asyncio.sleep(0.01)
        except TimeoutError:
            self.wrong.append(f"never: {what}")

    def _fails(self, kind: str, name: str) -> None:
        if self._fault and (self._fault.kind, self._fault.name) == (kind, name) and self._left:
            self._left -= 1
            raise self._fault.error("nobody foresaw it")

    def _called(self, name: str) -> None:
        task = asyncio.current_task()
        if task is not None and task.get_name() in self._loops:
            self.changes.add(name)
            self._fails("change", name)

    @contextmanager
    def _failing_files(self) -> Iterator[None]:
        """Let a file operation fail within the data folder."""
        if self._fault is None or self._fault.kind != "file":
            yield
            return
        owner, name = next((o, n) for o, n in FILES if f"{o.__name__}.{n}" == self._fault.name)
        real = getattr(owner, name)

        def shaky(*args: Any, **kwargs: Any) -> Any:
            if name in {"flock", "fsync"} or (args and str(args[0]).startswith(f"{self._data}/")):
                self._fails("file", f"{owner.__name__}.{name}")
            return real(*args, **kwargs)

        setattr(owner, name, shaky)
        try:
            yield
        finally:
            setattr(owner, name, real)


def _script(work: Work) -> Iterable[Step]:
    match words_of(work):
        case "start a thread":
            yield Uses(
                "1", "sessions_spawn", arguments={"task": "look", "mode": "session", "thread": True, "label": "a"}
            )
            yield "started"
        case _:
            yield "It "
            yield Progress("thinking")
            yield "is so."


def _orphan(data: Path) -> None:
    """A file that nothing names, and half of another, both old."""
    digest = "ab" * 32
    for path in (data / "files" / digest[:2] / digest, data / "files" / "half-old", data / "history"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\n# 2020-01-01 00:00:00\n+said\n")
        os.utime(path, (1e9, 1e9))
