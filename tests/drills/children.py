"""kill -9 while agents have children work for them: every result and every answer comes exactly once.

Two gateways share the database, so a child may run beside its parent or in the other process; both die at a label,
again and again.
"""

import asyncio
import time
from collections import Counter

from msgspec.structs import replace

from segue.core.contracts.probes import Point
from segue.core.values import Value
from tests.drills.gateways import Mind, Plan, start
from tests.drills.labels import POINTS
from tests.drills.town import Town
from tests.forge import kill
from tests.ports import free_port


class Report(Value, frozen=True):
    """What became of what people said, by how often it came."""

    accepted: int
    results: dict[str, int]
    """Messages whose task's result didn't come exactly once."""
    answers: dict[str, int]
    """Messages about which a child's answer didn't come exactly once: as a result of the tool, or as a delivery."""
    unanswered: list[str]

    @property
    def clean(self) -> bool:
        return not (self.results or self.answers or self.unanswered)


LABELS = [point for point in POINTS if not point.startswith("stream") and point is not Point.SEND_PLACED]
"""What a gateway passes that neither streams nor edits."""
PACE = 0.05
"""Seconds that a child takes for an answer, on average."""


async def run(where: str, point: Point, times: int, seed: int) -> Report:
    """Let two gateways die at a label, so many times in all, while people talk; then let one finish."""
    town = Town(2, seed)
    # One database may see every label: what was said at another must not be taken for a redelivery.
    town.chats = [f"{point}-{chat}" for chat in town.chats]
    async with town.platform():
        first = Plan(where, town.port, town.callback, pace=PACE, mind=Mind.DELEGATES)
        deadly = replace(first, dies_at=point, dies_after=POINTS[point])
        town.start_talking()
        deaths = [0]
        await asyncio.gather(
            _die(deadly, deaths, times),
            _die(replace(deadly, port=free_port()), deaths, times),
        )
        await town.stop_talking()
        gateway = await asyncio.to_thread(start, first)
        try:
            await _settle(town, 60.0)
        finally:
            await asyncio.to_thread(kill, gateway)
        return _compare(town)


async def _die(plan: Plan, deaths: list[int], times: int) -> None:
    """Start a gateway again whenever it dies, until all have died so many times together."""
    while deaths[0] < times:
        gateway = await asyncio.to_thread(start, plan)
        try:
            async with asyncio.timeout(60):
                while gateway.is_alive() and deaths[0] < times:
                    await asyncio.to_thread(gateway.join, 0.05)
            deaths[0] += not gateway.is_alive()
        finally:
            await asyncio.to_thread(kill, gateway)


async def _settle(town: Town, seconds: float) -> None:
    """Wait until everything came, or nothing new has come for so long."""
    seen, since = -1, time.monotonic()
    while not _compare(town).clean and time.monotonic() - since < seconds:
        posts = sum(len(town.texts(chat)) for chat in town.chats)
        if posts != seen:
            seen, since = posts, time.monotonic()
        await asyncio.sleep(0.05)


def _compare(town: Town) -> Report:
    results: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    texts = [text for chat in town.chats for text in town.texts(chat)]
    for text in texts:
        for message in town.accepted:
            results[message] += text == f"Result: found I am {message}"
            # Under what a child says stands its label.
            own = text.partition("\n\n")[0] == f"echo I am {message}"
            answers[message] += text.count(f"(echo I am {message})") + own
    return Report(
        accepted=len(town.accepted),
        results={message: results[message] for message in town.accepted if results[message] != 1},
        answers={message: answers[message] for message in town.accepted if answers[message] != 1},
        unanswered=[m for m in town.accepted if not any(f"You said: I am {m} " in f"{text} " for text in texts)],
    )
