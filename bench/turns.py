"""A turn from the message that came in to the answer that may be sent: one at a time, and many at once."""

import random
from collections.abc import AsyncIterator

from bench.databases import Databases
from bench.laps import heats, race, ratio
from bench.ours import Segue
from bench.raw import RawStore, who
from bench.table import Line, Target, per_second
from tests.database.disk import Disk

_ALONE = 50
_GROUPED = 250
"""Turns in a heat."""


async def opened(databases: Databases, disk: Disk | None = None) -> tuple[Segue, RawStore]:
    """Two new databases in which everybody has spoken once."""
    scale, vfs = databases.scale, disk.name if disk else None
    segue = await Segue.sqlite(databases.fresh("segue"), scale.at_once, vfs)
    raw = RawStore(databases.fresh("raw"), scale.at_once, vfs)
    await segue.populate(range(scale.some), 1, random.Random(1))
    raw.raw.populate([who(number) for number in range(scale.some)], 1, random.Random(1))
    return segue, raw


def order(count: int) -> list[int]:
    """Conversations in no particular order."""
    numbers = list(range(count))
    random.Random(2).shuffle(numbers)
    return numbers


async def turn(databases: Databases) -> AsyncIterator[Line]:
    """A full turn persisted, one at a time."""
    scale = databases.scale
    segue, raw = await opened(databases)
    ours, theirs = await race([segue.turns, raw.turns], heats(order(scale.some), _ALONE, scale.messages))
    what = f"turns, one at a time ({ours.turns:,} in {scale.some:,} conversations)"
    rates = per_second(ours.rate), f"raw SQLite {per_second(theirs.rate)}"
    yield Line("turn", what, *rates, ratio(ours, theirs), Target(">=", 0.7))
    await segue.close()
    raw.close()


async def together(databases: Databases) -> AsyncIterator[Line]:
    """A full turn persisted, many sessions at once."""
    scale = databases.scale
    segue, raw = await opened(databases)
    size = min(_GROUPED, scale.some)
    apart = heats(order(scale.some), size, 1)
    _, shared, own = await race([segue.together, raw.together, raw.together_apart], apart)
    best, name = (
        (raw.together, "one connection") if shared.rate >= own.rate else (raw.together_apart, "a connection each")
    )
    ours, theirs = await race([segue.together, best], heats(order(scale.some), size, scale.messages))
    what = f"turns, {scale.at_once} at once ({ours.turns:,} in {scale.some:,} conversations)"
    rates = per_second(ours.rate), f"raw SQLite {per_second(theirs.rate)} ({name})"
    yield Line("together", what, *rates, ratio(ours, theirs), Target(">=", 3))
    await segue.close()
    raw.close()


async def syncs(databases: Databases) -> AsyncIterator[Line]:
    """How often the disk must say that it has something."""
    scale = databases.scale
    disk = Disk()
    segue, raw = await opened(databases, disk)
    numbers = order(scale.some)
    for store in (segue, raw):  # the log has begun
        await store.turns(numbers[:10])
    what = ("fsyncs a turn, one at a time", f"fsyncs a turn, {scale.at_once} at once")
    for name, laps, most in zip(
        what, ((segue.turns, raw.turns), (segue.together, raw.together)), (2.0, 0.3), strict=True
    ):
        counted = []
        for lap in laps:
            before = disk.done["sync"]
            await lap(numbers)
            counted.append((disk.done["sync"] - before) / len(numbers))
        ours, theirs = counted
        target = Target("<=" if most >= 2 else "<", most)
        yield Line("syncs", name, f"{ours:.2f}", f"raw SQLite {theirs:.2f}", ours / theirs, target, round(ours, 1))
    await segue.close()
    raw.close()
    disk.unregister()
