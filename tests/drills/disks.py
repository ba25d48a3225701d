"""Disks that fail: the Nth write, every write, no room, no answer, a file that is locked, read-only or damaged.

Meanwhile people talk. Whoever was told yes is answered, once; who was told no isn't in the file; health turns red while
it lasts, and green when it is over.
"""

import asyncio
import random
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from enum import Enum
from pathlib import Path

import apsw

from segue.core.contracts.adapters import Accepted
from segue.core.values import Value
from segue.database.sqlite import Sqlite
from segue.errors import OutcomeUnknown, StoreError
from segue.runtime.gateway import Gateway
from tests.changes.invariants import VIOLATIONS
from tests.database.disk import Disk, Faulty
from tests.drills.gateways import Repeats
from tests.drills.planting import Bug, planted
from tests.drills.room import Wall, said, settings
from tests.in_process import gateway_on
from tests.runtime.test_health import NoRoomForMessages

PEOPLE = 4
PATIENCE = 0.02
"""Seconds that the store waits for a lock."""
LEASE = 0.3
_PAGE = 4096


class Trouble(Enum):
    """What is wrong with a disk."""

    FAILS = "an operation fails, and perhaps a few more"
    FAILS_FULL = "there is no room for an operation, and perhaps for a few more"
    BROKEN = "every operation fails until it is mended"
    FULL = "there is no room until somebody makes some"
    READ_ONLY = "nothing can be written until somebody permits it"
    LOCKED = "another program holds the file"
    DAMAGED = "whatever is read is damaged, until the disk is sound again"
    HANGS = "no operation answers until the disk is mended"
    NO_ROOM_FOR_MESSAGES = "a heartbeat fits, and no message does"


PASSES = (Trouble.FAILS, Trouble.FAILS_FULL)
"""What is over before anybody could see it."""
REFUSE = frozenset(Trouble) - {*PASSES, Trouble.DAMAGED, Trouble.HANGS}
"""Troubles in which every message is refused until somebody sees to the disk."""
_ERRORS = {
    Trouble.FAILS: apsw.IOError,
    Trouble.FAILS_FULL: apsw.FullError,
    Trouble.BROKEN: apsw.IOError,
    Trouble.FULL: apsw.FullError,
    Trouble.READ_ONLY: apsw.ReadOnlyError,
}


class Found(Value, frozen=True):
    """What came of some troubles."""

    troubles: int
    refused: int
    """Messages that somebody was told no about."""
    wrong: list[str]


def run(troubles: int, seed: int, stuck: float = 15.0, bug: Bug = Bug.NONE) -> Found:
    """So many troubles, one after the other, each with a new file; what hasn't happened after a while is stuck."""
    dice = random.Random(seed)
    wrong: list[str] = []
    refused = 0
    with tempfile.TemporaryDirectory(prefix="segue-disks-") as scratch, planted(*bug.patches):
        for n in range(troubles):
            trouble = list(Trouble)[(seed + n) % len(Trouble)]
            stage = _Stage(Path(scratch) / f"{n}.db", trouble, stuck, random.Random(dice.random()))
            wrong += [f"{trouble.name}, at {stage.which}: {each}" for each in asyncio.run(stage.play())]
            refused += stage.refused
    return Found(troubles, refused, wrong)


class _Stage:
    """One gateway on one disk that gets into trouble once."""

    def __init__(self, path: Path, trouble: Trouble, stuck: float, dice: random.Random) -> None:
        self._path = path
        self._trouble = trouble
        self._stuck = stuck
        self._dice = dice
        self._told: list[str] = []
        self._wall = Wall(lambda _what, _of: None, slowest=0.05)
        self._talking = True
        self._wrong: list[str] = []
        self.which = dice.randrange(1, 120)
        """The how-manieth operation fails first."""
        self.refused = 0

    async def play(self) -> list[str]:
        """Let it happen; returns what is wrong."""
        with ExitStack() as disks:
            disk = Faulty()
            disks.callback(disk.unregister)
            async with self._gateway(disk) as gateway:
                talking = [asyncio.create_task(self._talk(gateway, f"chat-{n}")) for n in range(PEOPLE)]
                await self._until("anybody was answered", lambda: bool(self._wall.posts))
                with self._in_trouble(disk):
                    if self._trouble in PASSES:
                        await self._until("the trouble came", lambda: disk.failed > 0)
                    else:
                        await self._until("health turned red", lambda: bool(gateway.problems()))
                        if self._trouble is not Trouble.DAMAGED:
                            await self._until("it said that it isn't ready", lambda: not gateway.ready)
                        if self._trouble in REFUSE:
                            await self._until("everybody was told no", lambda: self.refused >= PEOPLE)
                        if self._trouble in REFUSE and self._trouble is not Trouble.NO_ROOM_FOR_MESSAGES:
                            await self._until("its own work was refused", lambda: _has_own_trouble(gateway))
                if self._trouble is not Trouble.DAMAGED:
                    await self._until("health turned green", lambda: not gateway.problems())
                self._talking = False
                await asyncio.gather(*talking)
                if self._trouble is not Trouble.DAMAGED:
                    await self._answered()
            if self._trouble is Trouble.DAMAGED:
                # A gateway whose file was damaged has ended; it is started again once somebody saw to the disk.
                async with self._gateway(disk):
                    await self._answered()
        return self._wrong + self._look()

    @asynccontextmanager
    async def _gateway(self, disk: Disk) -> AsyncIterator[Gateway]:
        self._driver = driver = NoRoomForMessages(await Sqlite.open(self._path, vfs=disk.name, patience=PATIENCE))
        # Where heartbeats go on, a machine that is slow must not make them late.
        lease = 10.0 if self._trouble is Trouble.NO_ROOM_FOR_MESSAGES else LEASE
        async with gateway_on(driver, Repeats(0.0, ""), self._wall, settings=settings(lease)) as gateway:
            yield gateway

    async def _talk(self, gateway: Gateway, chat: str) -> None:
        """Say one thing after the other, each until somebody says yes, and see whether a no was one."""
        n = 0
        while self._talking:
            await self._insist(gateway, chat, f"{chat}-{n}")
            await asyncio.sleep(0.005)
            n += 1

    async def _insist(self, gateway: Gateway, chat: str, message: str) -> None:
        certain = True
        while self._talking or self._trouble is not Trouble.DAMAGED:
            try:
                accepted = await gateway.accept(said(chat, message))
            except StoreError as error:
                self.refused += 1
                certain = certain and not isinstance(error, OutcomeUnknown)
                await asyncio.sleep(0.005)
            else:
                if accepted is Accepted.DUPLICATE and certain:
                    self._wrong.append(f"{message} was kept, though somebody was told that it wasn't")
                self._told.append(message)
                return

    @contextmanager
    def _in_trouble(self, disk: "Faulty") -> Iterator[None]:
        """Trouble, and its end."""
        with ExitStack() as mended:
            mended.callback(disk.heal)
            match self._trouble:
                case Trouble.DAMAGED:
                    disk.rot = _damaged
                case Trouble.LOCKED:
                    other = apsw.Connection(str(self._path))
                    mended.callback(other.close)
                    other.set_busy_timeout(5000)
                    other.execute("begin immediate")
                    mended.callback(other.execute, "rollback")
                case Trouble.HANGS:
                    answers = threading.Event()
                    mended.callback(answers.set)
                    disk.guard = lambda _: _wait_for(answers)
                case Trouble.NO_ROOM_FOR_MESSAGES:
                    mended.callback(setattr, self._driver, "full", False)  # noqa: FBT003 -- the value of an attribute
                    self._driver.full = True
                case _:
                    times = self._dice.randint(1, 6) if self._trouble in PASSES else 1_000_000
                    disk.fail(self.which, _ERRORS[self._trouble], times=times)
            yield

    async def _answered(self) -> None:
        await self._until("all were answered", lambda: all(self._wall.answers(message) for message in self._told))

    async def _until(self, what: str, so: Callable[[], bool]) -> None:
        """Wait until it is so; that it never was is wrong."""
        try:
            async with asyncio.timeout(self._stuck):
                while not so():  # noqa: ASYNC110 -- a gateway tells its health to whoever asks
                    await asyncio.sleep(0.005)
        except TimeoutError:
            self._wrong.append(f"never: {what}")

    def _look(self) -> list[str]:
        """What isn't as it should be in the end."""
        wrong = [
            f"{message} was answered {len(answers)} times"
            for message in self._told
            if len(answers := self._wall.answers(message)) != 1
        ]
        for chat in (f"chat-{n}" for n in range(PEOPLE)):
            posts = [post for post in self._wall.posts.values() if post.address.chat == chat]
            numbers = [int(message.rsplit("-", 1)[1]) for post in posts for message in post.answers]
            if numbers != sorted(numbers):
                wrong.append(f"out of order in {chat}: {numbers}")
        for post in self._wall.posts.values():
            answered = [word for word in post.text.split() if word.startswith("chat-")]
            if answered != list(post.answers) or not all(each.startswith(post.address.chat) for each in answered):
                wrong.append(f"mixed in {post.address.chat}: {post.text} for {post.answers}")
        connection = apsw.Connection(str(self._path))
        try:
            wrong += [f"damaged: {what}" for (what,) in connection.execute("pragma quick_check") if what != "ok"]
            wrong += [f"{what}: {rows}" for what, sql in VIOLATIONS.items() if (rows := list(connection.execute(sql)))]
            there = {message for (message,) in connection.execute("select message from turns")}
        finally:
            connection.close()
        return wrong + [f"lost: {message}" for message in self._told if message not in there]


def _wait_for(answers: threading.Event) -> None:
    answers.wait()


def _has_own_trouble(gateway: Gateway) -> bool:
    """Whether the store refused a write of the gateway itself, such as a heartbeat."""
    return bool(gateway.patient.trouble or gateway._failures.problems)


def _damaged(content: bytes) -> bytes:
    """A page whose first byte is wrong: that SQLite notices, as it doesn't each wrong letter in somebody's words."""
    return bytes([content[0] ^ 0xFF]) + content[1:] if len(content) == _PAGE else content
