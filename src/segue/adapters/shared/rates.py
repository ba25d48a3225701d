"""Keeps calls below what a platform allows, before it has to refuse one."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from segue.core.contracts.database import Clock
from segue.core.messages import PLACEHOLDER, Delivery
from segue.core.values import Moment, Value
from segue.errors import SendLater

_MANY = 10_000
"""Keys after which those that count for nothing any more are dropped."""
_WRITTEN = "written"
_KEPT_BACK = 5
"""Of the messages that may be written at once, one in so many is kept for final texts, not for replies that grow."""


class Rate(Value, frozen=True):
    """So many calls in any stretch of so many seconds."""

    count: int
    seconds: float

    def wait(self, made: list[Moment], now: Moment) -> float:
        """Seconds until one more may be made after those that were."""
        return made[-self.count] + self.seconds - now if len(made) >= self.count else 0.0

    def add(self, made: list[Moment], now: Moment) -> None:
        """Count one more."""
        made.append(now)
        del made[: -self.count]


class Bucket(Value, frozen=True):
    """So many calls at once, and one more after each so many seconds.

    Two of different sizes may count under one key: the smaller one leaves something for whoever has the larger.
    """

    size: int
    seconds: float

    def wait(self, made: list[Moment], now: Moment) -> float:
        """Seconds until one more may be made; what is kept is when the bucket will be full again."""
        return made[-1] - (self.size - 1) * self.seconds - now if made else 0.0

    def used(self, made: list[Moment], now: Moment) -> float:
        """The part of it that isn't there now, from 0 to 1."""
        return max(0.0, made[-1] - now) / self.seconds / self.size if made else 0.0

    def add(self, made: list[Moment], now: Moment) -> None:
        """Count one more."""
        made[:] = [max(now, made[-1] if made else now) + self.seconds]


class Limiter:
    """Counts calls by key. A call waits a little by itself; for longer, the gateway does."""

    def __init__(self, clock: Clock = time.monotonic, patience: float = 0.0) -> None:
        self._clock = clock
        self._patience = patience
        self._made: dict[str, list[Moment]] = {}
        self._until: dict[str, Moment] = {}
        """When a key counts for nothing any more."""
        self._quiet: dict[str, Moment] = {}

    async def turn(self, wanted: Mapping[str, Rate | Bucket]) -> None:
        """Wait until a call that counts under these keys may be made, and count it."""
        while wait := self.take(wanted):
            if wait > self._patience:
                raise SendLater("The platform allows no more calls for now.", wait)
            await asyncio.sleep(wait)

    @asynccontextmanager
    async def paced(self, wanted: Mapping[str, Rate | Bucket]) -> AsyncIterator[None]:
        """Around a call: it waits for its turn, and if the platform asks for patience, so does whatever comes next."""
        await self.turn(wanted)
        try:
            yield
        except SendLater as error:
            self.quiet(error.seconds, *wanted)
            raise

    def take(self, wanted: Mapping[str, Rate | Bucket]) -> float:
        """Seconds until such a call may be made; 0 if it may now, and then it is counted."""
        now = self._clock()
        wait = max((self._wait(key, rate, now) for key, rate in wanted.items()), default=0.0)
        if wait > 0:
            return wait
        for key, rate in wanted.items():
            rate.add(self._made.setdefault(key, []), now)
            self._until[key] = max(now, self._made[key][-1]) + rate.seconds
        if len(self._made) > _MANY:
            self._drop(now)
        return 0.0

    def share(self, delivery: Delivery, pace: Bucket) -> dict[str, Rate | Bucket]:
        """The share of a pace that a message takes: of a reply that grows, less and less the emptier the bucket."""
        if delivery.attempt:
            return {_WRITTEN: pace}
        # Only what streams was never attempted before: it may wait, so that the final text needn't.
        size = pace.size - pace.size // _KEPT_BACK
        if delivery.text == PLACEHOLDER:
            # It shows nothing by itself: it is sent if there is room for the first words, too.
            return {_WRITTEN: Bucket(max(1, size - 1), pace.seconds)}
        slower = pace.seconds * pace.used(self._made.get(_WRITTEN, []), self._clock())
        return {_WRITTEN: Bucket(max(1, size), pace.seconds), "shown": Rate(1, slower)}

    def quiet(self, seconds: float | None, *keys: str) -> None:
        """Let no call under these keys be made for so long, if the platform said so."""
        if seconds is not None:
            self._quiet.update(dict.fromkeys(keys, self._clock() + seconds))

    def _wait(self, key: str, rate: Rate | Bucket, now: Moment) -> float:
        return max(rate.wait(self._made.get(key, []), now), self._quiet.get(key, now) - now)

    def _drop(self, now: Moment) -> None:
        for key in [key for key, until in self._until.items() if until <= now]:
            del self._made[key], self._until[key]
        self._quiet = {key: until for key, until in self._quiet.items() if until > now}
