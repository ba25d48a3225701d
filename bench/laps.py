"""Fair turns: the contenders run one after the other in short laps, so that whatever else the machine does hits all."""

import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

Lap = Callable[[Sequence[int]], Awaitable[float]]
"""Does something once for each of these conversations; returns the seconds that it took."""


class Store(Protocol):
    """What persists turns: Segue, plain SQLite or a peer."""

    name: str

    async def turns(self, conversations: Sequence[int]) -> float:
        """One turn of each conversation, one at a time; returns the seconds."""
        ...

    async def together(self, conversations: Sequence[int]) -> float:
        """One turn of each conversation, many at once; returns the seconds."""
        ...


@dataclass
class Pace:
    """How fast one contender was."""

    rates: list[float] = field(default_factory=list)
    """Per second, one for each lap."""

    turns: int = 0

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)


async def race(laps: Sequence[Lap], heats: Sequence[Sequence[int]], seconds: float = 45.0) -> list[Pace]:
    """Let everybody run each heat, or as many as there is time for; who begins changes from heat to heat."""
    paces = [Pace() for _ in laps]
    order = list(range(len(laps)))
    over = time.monotonic() + seconds
    for heat in heats:
        if time.monotonic() > over:
            break
        for which in order:
            paces[which].rates.append(len(heat) / await laps[which](heat))
            paces[which].turns += len(heat)
        order.append(order.pop(0))
    return paces


def ratio(one: Pace, other: Pace) -> float:
    """How many times as fast the one was, heat by heat."""
    return statistics.median(a / b for a, b in zip(one.rates, other.rates, strict=True))


def heats(conversations: Sequence[int], size: int, messages: int) -> list[Sequence[int]]:
    """Every conversation gets so many messages, in heats of this size."""
    pieces = [conversations[i : i + size] for i in range(0, len(conversations), size)]
    return [piece for _ in range(messages) for piece in pieces]
