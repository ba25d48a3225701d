"""Twice as much comes in as can be done: the gateway slows down, then says so, and loses nothing that it accepted."""

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path

from segue.core.contracts.adapters import Accepted
from segue.core.contracts.agents import Event, Work
from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import Arrival, Delivery, Speaker, Text, plain_text
from segue.core.people import UNBOUNDED
from segue.core.settings import AccountSettings, GatewaySettings, Streams
from segue.core.values import Value
from segue.errors import Overloaded
from segue.runtime.gateway import Gateway
from segue.testing import WhatsApp
from tests.drills.planting import Bug, planted
from tests.in_process import gateway_on

SLOTS = 8
TURN = 0.04
"""Seconds that the agent takes; a quarter of the slots is the host's."""
CAPACITY = SLOTS * 3 / 4 / TURN
OVERLOAD = 1.5
SLOWEST = 4.0
"""Seconds after which nobody waits any more to hear whether a message was taken."""
_HOST = Identity("whatsapp", "main", "host")


class Slow:
    """An agent that takes its time."""

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        """Say again what was said."""
        await asyncio.sleep(TURN)
        yield Text(plain_text(work.asked[-1].parts))


class Found(Value, frozen=True):
    """The figures of one run."""

    accepted: int
    refused: int
    slowest: float
    """Seconds until the slowest caller knew."""
    lost: int
    """Messages that were accepted and never answered."""
    host: float
    """Seconds until the slowest answer to the host."""
    unwell: bool
    """Health said so."""
    grown: float
    """Megabytes that the process grew by."""

    @property
    def wrong(self) -> list[str]:
        """All that shouldn't be, on any machine."""
        return [
            *(["nothing was refused"] if not self.refused else []),
            *([f"{self.lost} accepted messages were lost"] if self.lost else []),
            *(["health said that all was well"] if not self.unwell else []),
            *([f"the process grew by {self.grown:.0f} MB"] if self.grown > 200 else []),
        ]

    @property
    def slow(self) -> list[str]:
        """What took too long; on a machine that is busy with something else it may."""
        return [
            *([f"somebody waited {self.slowest:.1f} s to be taken in"] if self.slowest > SLOWEST else []),
            *([f"the host waited {self.host:.1f} s"] if self.host > SLOWEST else []),
        ]


def _arrival(who: Identity, number: int) -> Arrival:
    place = Place(Address("whatsapp", "main", chat=who.user), Kind.DM)
    return Arrival(place, f"m{number}", Speaker(who), (Text(f"message {number}"),), 0.0)


def _size() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Crowd:
    """People who write faster than they are answered, and a host who wants to know."""

    def __init__(self, gateway: Gateway, answered: dict[str, float], seed: int) -> None:
        self._gateway = gateway
        self._answered = answered
        self._dice = random.Random(seed)
        self.accepted: list[str] = []
        self.refused = 0
        self.slowest = self.host = 0.0
        self.unwell = False

    async def press(self, seconds: float) -> None:
        """Send twice of what can be done for so long."""
        ends, number = time.monotonic() + seconds, 0
        async with asyncio.TaskGroup() as group:
            group.create_task(self._ask(ends))
            while time.monotonic() < ends:
                number += 1
                group.create_task(self._say(number))
                await asyncio.sleep(self._dice.expovariate(2 * CAPACITY))

    async def _say(self, number: int) -> None:
        started = time.monotonic()
        try:
            taken = await self._gateway.accept(_arrival(Identity("whatsapp", "main", f"p{number}"), number))
        except Overloaded:
            self.refused += 1
            self.unwell = any("More comes in" in told for told in self._gateway.problems())
        else:
            assert taken is Accepted.NEW
            self.accepted.append(f"message {number}")
        self.slowest = max(self.slowest, time.monotonic() - started)

    async def _ask(self, ends: float) -> None:
        number = 1_000_000
        while time.monotonic() < ends:
            number += 1
            started, text = time.monotonic(), f"message {number}"
            await self._gateway.accept(_arrival(_HOST, number))
            while text not in self._answered and time.monotonic() < started + 90:  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.01)
            self.host = max(self.host, time.monotonic() - started)
            await asyncio.sleep(0.3)


async def run(where: str, seconds: float, seed: int, bug: Bug = Bug.NONE) -> Found:
    """One run, and a look at what became of all that was accepted."""
    platform = WhatsApp()
    adapter, answered = platform.adapter(), dict[str, float]()

    async def send(delivery: Delivery) -> str:
        answered[delivery.text] = time.monotonic()
        return delivery.key

    adapter.send = send  # type: ignore[method-assign]
    account = AccountSettings(public=True, streams=Streams.WHOLE)
    settings = GatewaySettings(hosts=(_HOST,), limits=UNBOUNDED, slots=SLOTS, overload=OVERLOAD, poll=0.05)
    with planted(*bug.patches):
        async with gateway_on(where, Slow(), adapter, account=account, settings=settings) as gateway:
            crowd, before = Crowd(gateway, answered, seed), _size()
            await crowd.press(seconds)
            ends = time.monotonic() + 200
            while not answered.keys() >= set(crowd.accepted) and time.monotonic() < ends:  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.05)
            lost = len(set(crowd.accepted) - answered.keys())
            grown = _size() - before
    return Found(len(crowd.accepted), crowd.refused, crowd.slowest, lost, crowd.host, crowd.unwell, grown)
