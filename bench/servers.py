"""PostgreSQL: the same turns over a server that syncs its commits, beside plain asyncpg and beside SQLite."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.databases import Databases
from bench.laps import heats, race, ratio
from bench.ours import Segue
from bench.raw_postgres import RawServer
from bench.skipped import Skipped
from bench.table import Line, Target, per_second
from bench.turns import order
from segue.store import open_driver
from tests.postgres import Durability, PostgresUnavailable, ensure, folder


@asynccontextmanager
async def server() -> AsyncIterator[str]:
    """The address of an empty database on a server that syncs."""
    with folder() as home:
        try:
            made = await asyncio.to_thread(ensure, home, Durability.FULL)
        except PostgresUnavailable as reason:
            raise Skipped(f"no PostgreSQL: {reason}") from reason
        yield made.dsn(made.create_database())


async def postgres(databases: Databases) -> AsyncIterator[Line]:
    """Turns over PostgreSQL."""
    scale = databases.scale
    async with server() as dsn:
        segue = await Segue.over(await open_driver(dsn), "PostgreSQL", scale.at_once)
        raw = await RawServer.open(dsn, scale.at_once)
        file = await Segue.sqlite(databases.fresh("segue"), scale.at_once)
        for store in (segue, file):
            await store.populate(range(scale.some), 1, random.Random(1))
        await raw.populate(range(scale.some))
        messages = max(1, scale.messages // 5)
        numbers = order(scale.some)
        alone = await race([segue.turns, raw.turns, file.turns], heats(numbers, 50, messages))
        grouped = await race([segue.together, raw.together, file.together], heats(numbers, 100, messages))
        for how, (ours, theirs, files), target in (
            ("one at a time", alone, Target(">=", 0.8)),
            (f"{scale.at_once} at once", grouped, Target(">=", 0.4)),
        ):
            what = f"turns on PostgreSQL, {how} ({ours.turns:,})"
            beside = f"raw asyncpg {per_second(theirs.rate)}"
            yield Line("postgres", what, per_second(ours.rate), beside, ratio(ours, theirs), target)
            beside = f"Segue on SQLite {per_second(files.rate)}"
            yield Line("postgres", what, per_second(ours.rate), beside, ratio(ours, files))
        for each in (segue, raw, file):
            await each.close()
