"""Keeps calls below a platform's rate limits."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from segue.core.contracts.database import Clock
from segue.core.messages import PLACEHOLDER, Delivery
from segue.core.values import Moment, Value
from segue.errors import SendLater

_MANY = 10_000
"""The number of keys after which expired ones are dropped."""
_WRITTEN = "written"
_KEPT_BACK = 5
"""The divisor for the reserve: one in so many messages is reserved for final texts."""


class Rate(Value, frozen=True):
    """A limit of calls within a sliding window of seconds."""

    count: int
    seconds: float

    def wait(self, made: list[Moment], now: Moment) -> float:
        """Return the seconds until the next call is allowed."""
        return made[-self.count] + self.seconds - now if len(made) >= self.count else 0.0

    def add(self, made: list[Moment], now: Moment) -> None:
        """Count a call."""
        made.append(now)
        del made[: -self.count]


class Bucket(Value, frozen=True):
    """A token bucket: a burst of calls, then one call every so many seconds.

    Two buckets of different sizes may count under one key. The smaller one leaves room for calls that use the larger
    one.
    """

    size: int
    seconds: float

    def wait(self, made: list[Moment], now: Moment) -> float:
        """Return the seconds until the next call is allowed.

        `made` holds one time: when the bucket will be full again.
        """
        return made[-1] - (self.size - 1) * self.seconds - now if made else 0.0

    def used(self, made: list[Moment], now: Moment) -> float:
        """Return the used part of the bucket, from 0 to 1."""
        return max(0.0, made[-1] - now) / self.seconds / self.size if made else 0.0

    def add(self, made: list[Moment], now: Moment) -> None:
        """Count a call."""
        made[:] = [max(now, made[-1] if made else now) + self.seconds]


class Limiter:
    """Counts calls by key. A short wait happens here; for a longer one, the gateway retries later."""

    def __init__(self, clock: Clock = time.monotonic, patience: float = 0.0) -> None:
        self._clock = clock
        self._patience = patience
        self._made: dict[str, list[Moment]] = {}
        self._until: dict[str, Moment] = {}
        """The time at which a key expires."""
        self._quiet: dict[str, Moment] = {}

    async def turn(self, wanted: Mapping[str, Rate | Bucket]) -> None:
        """Wait until a call under these keys is allowed, and count it."""
        while wait := self.take(wanted):
            if wait > self._patience:
                raise SendLater("The platform allows no more calls for now.", wait)
            await asyncio.sleep(wait)

    @asynccontextmanager
    async def paced(self, wanted: Mapping[str, Rate | Bucket]) -> AsyncIterator[None]:
        """Wait before a call. If the platform asks for a pause, later calls under these keys wait too."""
        await self.turn(wanted)
        try:
            yield
        except SendLater as error:
            self.quiet(error.seconds, *wanted)
            raise

    def take(self, wanted: Mapping[str, Rate | Bucket]) -> float:
        """Return the seconds until a call is allowed; if it is allowed now, count it and return 0."""
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
        """Return the limits that a message counts under.

        Updates of a growing reply become rarer as the bucket empties.
        """
        if delivery.attempt:
            return {_WRITTEN: pace}
        # Only streamed updates have no attempt before. They may wait, so that the final text needn't.
        size = pace.size - pace.size // _KEPT_BACK
        if delivery.text == PLACEHOLDER:
            # A placeholder shows nothing by itself. It is sent if the first words fit too.
            return {_WRITTEN: Bucket(max(1, size - 1), pace.seconds)}
        slower = pace.seconds * pace.used(self._made.get(_WRITTEN, []), self._clock())
        return {_WRITTEN: Bucket(max(1, size), pace.seconds), "shown": Rate(1, slower)}

    def quiet(self, seconds: float | None, *keys: str) -> None:
        """Block calls under these keys for the seconds that the platform asked for, if it did."""
        if seconds is not None:
            self._quiet.update(dict.fromkeys(keys, self._clock() + seconds))

    def _wait(self, key: str, rate: Rate | Bucket, now: Moment) -> float:
        return max(rate.wait(self._made.get(key, []), now), self._quiet.get(key, now) - now)

    def _drop(self, now: Moment) -> None:
        for key in [key for key, until in self._until.items() if until <= now]:
            del self._made[key], self._until[key]
        self._quiet = {key: until for key, until in self._quiet.items() if until > now}
