"""Canaries: words that are said in every way there is, then forgotten, and looked for in every byte that is left."""

import asyncio
import itertools
import logging
import random
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from prompt_toolkit.history import FileHistory

from segue.changes.exchange import letters
from segue.core.contracts.adapters import Connection, Intake
from segue.core.contracts.agents import Work
from segue.core.contracts.database import Driver
from segue.core.contracts.files import FileStore
from segue.core.lanes import Address, Identity, Kind, Person, Place
from segue.core.messages import Arrival, Citation, Delivery, Part, Reasoning, Sending, Speaker, Text
from segue.core.settings import AccountSettings, GatewaySettings
from segue.core.values import Moment, SessionId
from segue.runtime.files.database import DatabaseFiles
from segue.runtime.files.folder import Folder
from segue.runtime.forgetting import HISTORY
from segue.runtime.gateway import Gateway
from segue.store import open_driver
from segue.testing import HandClock, ScriptedAgent
from segue.testing.agents import Step, Uses, said
from tests.drills.remains import files_with, remains
from tests.in_process import gateway_on

PATIENCE = 20.0
PLATFORM, ACCOUNT = "sink", "main"
CHORES = (
    *("retry", "cited", "edited", "searched", "exported", "summed up", "branched", "letter", "file", "indexed"),
    *("typed", "told"),
)


class Sink:
    """A platform that takes everything and shows nobody."""

    platform = PLATFORM
    account = ACCOUNT
    sending = Sending.KEYED
    connection = Connection.ANY
    largest_file = 2**30

    def __init__(self) -> None:
        self.sent: list[Delivery] = []
        self.came = asyncio.Event()

    async def run(self, intake: Intake) -> None:
        """It is there."""
        intake.connected()
        await asyncio.Event().wait()

    def fits(self, text: str) -> bool:
        """Whatever it is."""
        return bool(text) or not text

    async def send(self, delivery: Delivery) -> str:
        """Keep it in memory."""
        self.sent.append(delivery)
        self.came.set()
        return f"out{len(self.sent)}"


class Heard(logging.Handler):
    """All that was logged."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


def answers(work: Work) -> Iterable[Step]:
    """Use a tool, note secrets, think, and say it again."""
    words = said(work)
    if "secret" in words and work.notes is not None:
        yield Uses(str(time.monotonic_ns()), "notes_write", arguments={"text": f"they say: {words}"})
    yield Uses(str(time.monotonic_ns()), "look_up", lambda: f"found {words}", {"for": words})
    yield Reasoning("test", {"thought": words})
    yield f"You said: {words}"


class Noter(ScriptedAgent):
    """An agent that keeps notes."""

    notes = True


class ClockedFiles(DatabaseFiles):
    """Files in the database, whose clock is the drill's."""

    def __init__(self, driver: Driver, clock: HandClock) -> None:
        super().__init__(driver)
        self._clock = clock

    async def now(self) -> Moment:
        """The drill's time."""
        return self._clock()


class Cage:
    """One person who talks to a gateway, and a canary a conversation."""

    def __init__(
        self, gateway: Gateway, files: FileStore, sink: Sink, where: str, folder: Path, clock: HandClock
    ) -> None:
        self.store = gateway.store
        self.files = files
        self.where = where
        self.folder = folder
        self._gateway = gateway
        self._sink = sink
        self._clock = clock
        self._numbers = itertools.count(1)
        self.heard = Heard()
        self.chat = "c1"

    async def says(self, text: str, *more: Part, quotes: str = "", edits: str = "", cites: str = "") -> tuple[str, str]:
        """Say something; returns the message's id and what comes back."""
        id, before = f"in{next(self._numbers)}", len(self._sink.sent)
        self._clock.passes(100.0)
        place = Place(Address(PLATFORM, ACCOUNT, "", self.chat), Kind.DM, "Ann")
        speaker = Speaker(Identity(PLATFORM, ACCOUNT, "ann"), "Ann")
        cited = (Citation(cites, "bot"),) if cites else ()
        parts, at = (Text(text), *more), self._clock()
        arrival = Arrival(place, id, speaker, parts, at, quotes=quotes, edits=edits, cites=cited)
        await self._gateway.accept(arrival)
        if edits:
            return id, ""
        async with asyncio.timeout(PATIENCE):
            while len(self._sink.sent) == before:
                self._sink.came.clear()
                await self._sink.came.wait()
        return id, self._sink.sent[-1].text

    async def session(self) -> SessionId:
        """The one that is spoken to."""
        lane = await self.store.lane(Place(Address(PLATFORM, ACCOUNT, "", self.chat), Kind.DM), await self.ann())
        found = await self.store.bound(lane)
        assert found is not None
        return found.id

    async def ann(self) -> Person:
        """The person."""
        return await self.store.person(Identity(PLATFORM, ACCOUNT, "ann"))


@asynccontextmanager
async def cage(where: str, folder: Path, driver: Driver | None = None) -> AsyncIterator[Cage]:
    """A gateway on a database, with a data folder."""
    clock, sink = HandClock(time.time()), Sink()
    driver = driver or await open_driver(where)
    in_database = where.startswith("postgresql://")
    files: FileStore = ClockedFiles(driver, clock) if in_database else Folder(folder, clock)
    settings = GatewaySettings(poll=0.02, data=str(folder))
    more: Any = {
        "account": AccountSettings(allow=frozenset({"ann"})),
        "settings": settings,
        "files": files,
    }
    logger = logging.getLogger("segue")
    async with gateway_on(driver, Noter(otherwise=answers), sink, clock=clock, **more) as gateway:
        made = Cage(gateway, files, sink, where, folder, clock)
        logger.addHandler(made.heard)
        try:
            yield made
        finally:
            logger.removeHandler(made.heard)


async def run(where: str, folder: Path, runs: int, seed: int, driver: Driver | None = None) -> list[str]:
    """Let so many canaries sing and be forgotten; returns where one is left."""
    dice, wrong = random.Random(seed), list[str]()
    async with cage(where, folder, driver) as caged:
        for number in range(runs):
            caged.chat = f"c{dice.randrange(3)}"
            word = f"zq{dice.getrandbits(48):012x}"
            chores = [chore for chore in CHORES if dice.random() < 0.4]
            await caged.says(f"nothing special {number}")
            left = await _sing(caged, word, chores, dice)
            wrong += [f"{number} {word} {chores}: {place}" for place in left]
            if wrong:
                break
    return wrong


async def _sing(cage: Cage, word: str, chores: list[str], dice: random.Random) -> list[str]:
    files: list[Part] = []
    if "file" in chores:
        files = [await cage.files.keep(f"{word}.txt", "text/plain", _once(f"kept {word}".encode()))]
    asked, answer = await cage.says(f"my secret is {word}", *files)
    await _repeat(cage, word, chores, asked, answer)
    whole = "branched" not in chores and dice.random() < 0.3
    if whole:
        # Its title is the session's, not an exchange's.
        await cage.says(f"/title {word}")
    await (cage.says("/forget session") if whole else cage.says("/forget", quotes=asked))
    _, receipt = await cage.says("/yes")
    if not receipt.startswith("Forgotten:"):
        return [f"no receipt: {receipt}"]
    found = await remains(cage.where, word)
    found += [f"file {name}" for name in files_with(cage.folder, word)]
    return found + [f"log: {line}" for line in cage.heard.lines if word in line]


async def _repeat(cage: Cage, word: str, chores: list[str], asked: str, answer: str) -> None:
    """Let the word come to as many places as the chores say."""
    session = await cage.session()
    if "retry" in chores:
        await cage.says("/retry")
    if "edited" in chores:
        await cage.says(f"my secret is {word} indeed", edits=asked)
    if "cited" in chores:
        await cage.says("what is that?", cites=answer)
    if "searched" in chores:
        await cage.store.index()
        await cage.says(f"/search {word}")
    if "exported" in chores:
        await cage.says("/export")
    if "summed up" in chores:
        tip = (await cage.store.path(session))[-1].tip
        await cage.store.compress(session, f"They spoke of {word}.", tip, await cage.ann())
    if "branched" in chores:
        await cage.says("/branch")
        await cage.says("on its own")
    await _keep(cage, word, chores, asked)


async def _keep(cage: Cage, word: str, chores: list[str], asked: str) -> None:
    """Let the word come to where nobody said it."""
    if "letter" in chores:
        raw = ascii(Text(f"{asked} {word}"))
        await cage.store.driver.write(letters.bury, f"{PLATFORM}/{ACCOUNT}", raw, "it was torn", 1.0)
    if "typed" in chores:
        cage.folder.mkdir(parents=True, exist_ok=True)
        typed = FileHistory(str(cage.folder / HISTORY))
        for text in (f"my secret is {word}", f"/search {word}"):
            typed.store_string(text)
    if "told" in chores:
        # What was noted is told at the start of a session in another chat.
        chat, cage.chat = cage.chat, f"{cage.chat}b"
        await cage.says("hello")
        cage.chat = chat
    if "indexed" in chores:
        await cage.store.index()


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
