"""Many answers at the same moment, or many calls that hang: all others are answered, and the event loop goes on."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from segue.core.contracts.adapters import Accepted
from segue.core.contracts.agents import Event, Work
from segue.core.contracts.probes import Point
from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import Arrival, Delivery, Speaker, Text, plain_text
from segue.core.people import UNBOUNDED
from segue.core.settings import AccountSettings, Streams
from segue.runtime import outbox
from segue.runtime.outbox import Outbox
from segue.testing import EchoAgent, WhatsApp
from tests.drills.planting import Bug, Patch, planted
from tests.in_process import gateway_on

PATIENCE = 120.0
_LOOKS = 3
_TURNS = 10_000
"""Turns of a loop that let nobody else go on, after which the loop is taken for one that never will."""


class Frozen(Exception):
    """A loop turned for ever."""


class Crowd:
    """People who are answered at the same moment, on a platform that takes nothing before all of them are."""

    def __init__(self, people: int) -> None:
        self._people = people
        self._asked = self._finished = 0
        self._answer, self._take = asyncio.Event(), asyncio.Event()
        self.shown = Counter[str]()
        self.over = asyncio.Event()
        self.wrong: list[str] = []
        self._turns = self._looks = 0

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        """Answer once everybody has asked."""
        self._asked += 1
        if self._asked == self._people:
            self._answer.set()
        await self._answer.wait()
        yield Text(plain_text(work.asked[-1].parts))

    def probe(self, point: Point) -> None:
        """Count the turns that are finished."""
        self._finished += point is Point.TURN_FINISHED

    async def send(self, delivery: Delivery) -> str:
        """Take a message."""
        await self._take.wait()
        self.shown[delivery.text] += 1
        if self.shown.total() >= self._people:
            self.over.set()
        return delivery.key

    def guarded(self, free: Any) -> property:
        """Return what an outbox looks at in each turn of its loop, made to raise `Frozen` once nobody else goes on."""

        def look(box: Outbox) -> bool:
            # The platform takes messages once all turns are finished and the outbox has looked a few times since.
            self._looks += self._finished >= self._people
            if self._looks >= _LOOKS:
                self._take.set()
            self._turns += 1
            if self._turns == 1:
                asyncio.get_running_loop().call_soon(self._went_on)
            if self._turns > _TURNS:
                self.wrong.append("the event loop stands still")
                self.over.set()
                raise Frozen
            is_free: bool = free.fget(box)
            return is_free

        return property(look)

    def _went_on(self) -> None:
        self._turns = 0


def _arrival(number: int) -> Arrival:
    who = Identity("whatsapp", "main", f"p{number}")
    place = Place(Address("whatsapp", "main", chat=who.user), Kind.DM)
    return Arrival(place, f"m{number}", Speaker(who), (Text(f"message {number}"),), 0.0)


async def run(where: str, people: int, bug: Bug = Bug.NONE) -> list[str]:
    """Answer so many people at the same moment; returns what is wrong."""
    crowd, adapter = Crowd(people), WhatsApp().adapter()
    adapter.send = crowd.send  # type: ignore[method-assign]
    account = AccountSettings(public=True, streams=Streams.WHOLE)
    more: dict[str, Any] = {
        "limits": UNBOUNDED,
        "slots": 2 * people,
        "poll": 0.05,
        "lease": 60.0,
        "overload": PATIENCE,
        "probe": crowd.probe,
    }
    with planted(*bug.patches, Patch(Outbox, "free", crowd.guarded)):
        async with gateway_on(where, crowd, adapter, account=account, **more) as gateway:
            taken = await asyncio.gather(*(gateway.accept(_arrival(n)) for n in range(people)))
            assert set(taken) == {Accepted.NEW}
            try:
                async with asyncio.timeout(PATIENCE):
                    await crowd.over.wait()
            except TimeoutError:
                crowd.wrong.append("somebody is never answered")
    if not crowd.wrong and crowd.shown != Counter(f"message {n}" for n in range(people)):
        crowd.wrong.append(f"lost or doubled: {crowd.shown.most_common(3)}")
    return crowd.wrong


async def hanging(where: str, people: int, slow: float, patience: float = PATIENCE, bug: Bug = Bug.NONE) -> list[str]:
    """Let the platform never answer for so many people, and answer one more; returns what is wrong."""
    adapter, hang, shown, begun = WhatsApp().adapter(), asyncio.Event(), asyncio.Event(), Counter[str]()

    async def send(delivery: Delivery) -> str:
        begun[delivery.address.chat] += 1
        if delivery.address.chat != f"p{people}":
            await hang.wait()
        shown.set()
        return delivery.key

    adapter.send = send  # type: ignore[method-assign]
    account = AccountSettings(public=True, streams=Streams.WHOLE)
    more: dict[str, Any] = {"limits": UNBOUNDED, "lease": 60.0, "poll": 0.1, "overload": PATIENCE}
    with planted(Patch(outbox, "_SLOW", lambda _: slow), *bug.patches):
        async with gateway_on(where, EchoAgent(), adapter, account=account, **more) as gateway:
            try:
                await asyncio.gather(*(gateway.accept(_arrival(n)) for n in range(people)))
                async with asyncio.timeout(patience):
                    await gateway.accept(_arrival(people))
                    await shown.wait()
            except TimeoutError:
                return [f"{len(begun)} calls hang, and somebody else is never answered"]
            finally:
                hang.set()
    return [f"{chat} was called {count} times" for chat, count in begun.items() if count > 1]
