"""What one operation costs, and whether it costs more when there are more sessions."""

import random
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from bench.databases import LONG, SPARE, UNDO, Databases, session_of
from bench.ours import Segue, place_of
from bench.raw import HOST, RawStore, who
from bench.table import Line, Target, milliseconds
from bench.texts import RARE
from segue.core.lanes import Lane, Person
from segue.core.moves import Fork, Resume
from segue.core.transcripts import Session

_SAME = Target("<=", 1.2)


@dataclass
class Pair:
    """A store of Segue's and plain SQLite with as many sessions."""

    sessions: int
    segue: Segue
    raw: RawStore
    host: Person

    @classmethod
    async def open(cls, databases: Databases, sessions: int) -> "Pair":
        segue = await Segue.sqlite(await databases.segue(sessions))
        return cls(sessions, segue, RawStore(databases.raw(sessions)), await segue.host())

    async def close(self) -> None:
        await self.segue.close()
        self.raw.close()

    async def lane(self, chat: int | str) -> Lane:
        return await self.segue.store.lane(place_of(chat), self.host)

    async def session(self, chat: int | str) -> Session:
        session = await self.segue.store.bound(await self.lane(chat))
        if session is None:
            raise LookupError(chat)
        return session


Once = Callable[[], Awaitable[object]]
Plainly = Callable[[], object]
"""Does an operation one time; plain SQLite does it without an event loop."""


async def route(databases: Databases) -> AsyncIterator[Line]:
    """A message of a known conversation: find it alone, and take it in until that is durable."""
    scale = databases.scale
    pairs = [await Pair.open(databases, sessions) for sessions in (scale.some, scale.many)]
    dice = random.Random(3)
    finds: list[tuple[float, float]] = []
    accepts: list[tuple[float, float]] = []
    for pair in pairs:
        numbers = dice.choices(range(pair.sessions), k=scale.times)
        lanes = [await pair.lane(number) for number in numbers]
        ours, theirs = [], []
        for number, lane in zip(numbers, lanes, strict=True):
            ours.append(await _timed(partial(pair.segue.store.bound, lane)))
            theirs.append(_clocked(partial(pair.raw.raw.find, who(number)[0])))
        finds.append((statistics.median(ours), statistics.median(theirs)))
    for pair in pairs:
        ours, theirs = [], []
        for number in dice.choices(range(pair.sessions), k=scale.times):
            ours += await pair.segue.accepts([number])
            theirs += await pair.raw.accepts([number])
        accepts.append((statistics.median(ours), statistics.median(theirs)))
    for what, found in (("find a conversation, read only", finds), ("take a message in, durable", accepts)):
        for pair, (ours_p50, theirs_p50) in zip(pairs, found, strict=True):
            yield Line(
                "route",
                f"{what}: p50 at {pair.sessions:,}",
                milliseconds(ours_p50),
                f"raw SQLite {milliseconds(theirs_p50)}",
                ours_p50 / theirs_p50,
            )
        yield _grown("route", what, found, pairs)
    for pair in pairs:
        await pair.close()


async def list_newest(databases: Databases) -> AsyncIterator[Line]:
    """The 20 sessions that somebody used last."""

    async def make(pair: Pair) -> tuple[Once, Plainly]:
        return lambda: pair.segue.store.sessions(pair.host, 20), partial(pair.raw.raw.newest, HOST)

    async for line in _both(databases, "list", "list the 20 newest sessions", make, Target("<", 1, "ms")):
        yield line


async def search(databases: Databases) -> AsyncIterator[Line]:
    """A word that is in one of a thousand entries."""

    async def make(pair: Pair) -> tuple[Once, Plainly]:
        if len(await pair.segue.store.search(RARE, pair.host)) < min(10, len(pair.raw.raw.search(RARE, HOST))):
            raise LookupError("what was indexed isn't found")
        return lambda: pair.segue.store.search(RARE, pair.host), partial(pair.raw.raw.search, RARE, HOST)

    entries = 2 * databases.scale.many
    async for line in _both(databases, "search", f"a word in 1 of 1,000 of {entries:,} entries", make, None):
        yield line


async def undo(databases: Databases) -> AsyncIterator[Line]:
    """Take the last exchange back."""

    async def make(pair: Pair) -> tuple[Once, Plainly]:
        session = await pair.session(UNDO)
        raw = partial(pair.raw.raw.undo, session_of(pair.raw.raw, UNDO))
        return lambda: pair.segue.store.undo(session.id, pair.host), raw

    async for line in _both(databases, "undo", "undo at 1,000 messages, durable", make, Target("<", 1, "ms")):
        yield line


async def rebind(databases: Databases) -> AsyncIterator[Line]:
    """Let a lane speak to another session."""

    async def make(pair: Pair) -> tuple[Once, Plainly]:
        lane = await pair.lane(SPARE)
        ids = [(await pair.session(chat)).id for chat in (1, 3)]
        raw_ids = [session_of(pair.raw.raw, who(number)[0]) for number in (1, 3)]

        async def ours() -> object:
            ids.reverse()
            return await pair.segue.store.move(Resume(lane, ids[0]), pair.host)

        def raw() -> None:
            raw_ids.reverse()
            pair.raw.raw.rebind(SPARE, raw_ids[0])

        return ours, raw

    async for line in _both(databases, "rebind", "rebind a lane (resume), durable", make, Target("<", 1, "ms")):
        yield line


async def fork(databases: Databases) -> AsyncIterator[Line]:
    """Go on in a new session that begins where another one stands."""

    async def make(pair: Pair) -> tuple[Once, Plainly]:
        lane, source = await pair.lane(SPARE), (await pair.session(LONG)).id

        async def ours() -> object:
            store = pair.segue.store
            return await store.move(Fork(lane, source, store.new_session_id()), pair.host)

        return ours, partial(pair.raw.raw.fork, SPARE, session_of(pair.raw.raw, LONG))

    async for line in _both(databases, "fork", "fork a session of 10,000 entries, durable", make, None):
        yield line


async def _both(
    databases: Databases,
    row: str,
    what: str,
    make: Callable[[Pair], Awaitable[tuple[Once, Plainly]]],
    target: Target | None,
) -> AsyncIterator[Line]:
    """Time an operation in the small and in the large database, in turns."""
    scale = databases.scale
    pairs = [await Pair.open(databases, sessions) for sessions in (scale.few, scale.many)]
    made = [await make(pair) for pair in pairs]
    taken: list[tuple[list[float], list[float]]] = [([], []) for _ in pairs]
    for _ in range(scale.times):
        for (ours, raw), (our_times, raw_times) in zip(made, taken, strict=True):
            our_times.append(await _timed(ours))
            raw_times.append(_clocked(raw))
    medians = [(statistics.median(ours), statistics.median(theirs)) for ours, theirs in taken]
    for pair, (ours_p50, theirs_p50) in zip(pairs, medians, strict=True):
        yield Line(
            row,
            f"{what}: p50 at {pair.sessions:,}",
            milliseconds(ours_p50),
            f"raw SQLite {milliseconds(theirs_p50)}",
            ours_p50 / theirs_p50,
            target,
            ours_p50 * 1000,
        )
    yield _grown(row, what, medians, pairs)
    for pair in pairs:
        await pair.close()


def _grown(row: str, what: str, medians: list[tuple[float, float]], pairs: list[Pair]) -> Line:
    """How much more it costs with more sessions, for Segue and for plain SQLite."""
    (small, raw_small), (large, raw_large) = medians
    grown, raw_grown = large / small, raw_large / raw_small
    sizes = f"{pairs[1].sessions:,} / {pairs[0].sessions:,}"
    return Line(row, f"{what}: {sizes}", f"{grown:.2f}x", f"raw SQLite {raw_grown:.2f}x", None, _SAME, grown)


async def _timed(once: Once) -> float:
    began = time.perf_counter()
    await once()
    return time.perf_counter() - began


def _clocked(once: Plainly) -> float:
    began = time.perf_counter()
    once()
    return time.perf_counter() - began
