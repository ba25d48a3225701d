"""Hostile input at the door: whatever somebody types, asks of a tool, posts or tells, it is handled, and quickly.

A case is wrong if it ends in an error that nobody foresaw, if it takes too long, if its
answer is longer than anybody would read, or if somebody else isn't answered after it.
"""

import logging
import random
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import ValidationError
from msgspec.structs import replace

from segue import Store
from segue.adapters.http import Http
from segue.changes.exchange import letters
from segue.core.messages import Delivery
from segue.core.people import UNBOUNDED
from segue.core.settings import AccountSettings, GatewaySettings, QuestionSettings, Streams
from segue.core.values import Secret, Value
from segue.core.windows import HOSTS, TERMINAL, WEB
from segue.errors import SegueError
from segue.runtime.gateway import Gateway
from segue.runtime.windows.local import Local
from segue.runtime.windows.window import meet_host
from segue.store import open_driver
from segue.testing import Shelf, WhatsApp
from segue.testing.waits import Changes, NeverCame
from tests.drills.hostile_doors import HOST, SECRET, Bot, Caller, Case, Doors
from tests.drills.hostile_feishu import Bird
from tests.drills.hostile_platforms import App, Guest, Line, Phone
from tests.drills.planting import Bug, planted
from tests.in_process import gateway_on

ROUND = 200
"""Cases after which somebody else wants an answer."""
LONGEST = 12_000
"""Characters of an answer to a command."""
KINDS = ("command", "tool", "telegram", "matrix", "slack", "discord", "signal", "whatsapp", "feishu", "http", "frame")


class Found(Value, frozen=True):
    """The outcome of a round: cases by what they were, and what was wrong."""

    cases: dict[str, int]
    wrong: list[str]
    arrivals: int = 0
    """Payloads that an adapter understood as somebody's message."""
    done: int = 0
    """Tool calls that did what they were to do."""


class Ears(logging.Handler):
    """Hears of errors that nobody foresaw."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it, if it is one."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, SegueError | ValidationError):
            trace = traceback.extract_tb(error.__traceback__)[-1]
            self.heard.append(f"{record.getMessage()[:200]}: {error!r} in {Path(trace.filename).name}:{trace.lineno}")


@contextmanager
def listening() -> Iterator[Ears]:
    """Hear all that the gateway logs, in place of whoever does otherwise: writing it down takes longest."""
    logger, ears = logging.getLogger("segue"), Ears()
    logger.addHandler(ears)
    before, logger.propagate = logger.propagate, False
    try:
        yield ears
    finally:
        logger.propagate = before
        logger.removeHandler(ears)


class Watch:
    """Looks at what became of the cases of a round."""

    def __init__(self, gateway: Gateway, said: list[Delivery], ears: Ears) -> None:
        self._gateway = gateway
        self._said = said
        self._ears = ears

    async def look(self, cases: list[Case]) -> list[str]:
        """What is wrong, by the case's name where one can be named."""
        wrong = [f"{name}: {why}" for name, why in cases if why]
        long = [d for d in self._said if not d.session and len(d.text) > LONGEST]
        wrong += [f"its answer has {len(d.text):,} characters: {d.text[:80]!a}" for d in long]
        self._said.clear()
        dead = await self._gateway.store.driver.read(letters.newest, 20)
        wrong += [f"{letter.why}: {letter.raw[:300]}" for letter in dead if letter.why.isidentifier()]
        wrong += self._ears.heard
        return wrong


async def run(where: str, cases: int, seed: int, bug: Bug = Bug.NONE, kinds: tuple[str, ...] = KINDS) -> Found:
    """So many cases against one gateway."""
    dice, agent = random.Random(seed), Caller(random.Random(seed))
    said, changes, wrong, done = list[Delivery](), Changes(), list[str](), Counter[str]()
    http = Http("alpha", Secret(SECRET), "http://127.0.0.1:9/", Shelf())
    platforms: list[Any] = [WhatsApp().adapter(), http, Bot(Shelf())]
    platforms += [App(dice), Guest(dice), Phone(dice), Line(dice), Bird(dice)]
    adapters = [*platforms, Local(TERMINAL), Local(WEB)]

    async def send(delivery: Delivery) -> str:
        said.append(delivery)
        changes.tell()
        return delivery.key

    for adapter in platforms:
        adapter.send = send
    account = AccountSettings(public=True, streams=Streams.WHOLE)
    accounts = {(one.platform, one.account): account for one in platforms}
    settings = GatewaySettings(hosts=(HOST, *HOSTS), accounts=accounts, limits=UNBOUNDED, poll=0.05)
    # Nobody answers what a tool asks: the time for it is over at once.
    settings = replace(settings, questions=QuestionSettings(0.001))
    with planted(*bug.patches), listening() as ears:
        driver = await open_driver(where)
        await meet_host(Store(driver))
        async with gateway_on(driver, agent, *adapters, settings=settings) as gateway:
            doors, watch = Doors(gateway, agent, said, changes, dice), Watch(gateway, said, ears)
            while done.total() < cases and not wrong:
                told: list[Case] = []
                try:
                    for kind in kinds:
                        share, knock = doors.kinds[kind]
                        told += await knock(share * ROUND // 100)
                    await doors.others()
                except NeverCame as error:
                    wrong.append(str(error))
                done.update(name for name, _ in told)
                wrong += await watch.look(told)
            await doors.close()
    await http.close()
    return Found(dict(done), [f"{line} (seed {seed})" for line in wrong], doors.arrivals, agent.done)
