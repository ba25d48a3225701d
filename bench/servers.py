"""PostgreSQL: the same turns over a server that syncs its commits, beside SQLite."""

import random
from collections.abc import AsyncIterator

from bench.databases import Databases
from bench.laps import heats, race, ratio
from bench.ours import Segue
from bench.skipped import Skipped
from bench.table import Line, per_second
from bench.turns import order
from segue.store import open_driver
from tests.postgres import Durability, PostgresUnavailable, ensure, folder


async def postgres(databases: Databases) -> AsyncIterator[Line]:
    """Turns over PostgreSQL."""
    scale = databases.scale
    with folder() as home:
        try:
            server = ensure(home, Durability.FULL)
        except PostgresUnavailable as reason:
            raise Skipped(f"no PostgreSQL: {reason}") from reason
        theirs = await Segue.over(await open_driver(server.dsn(server.create_database())), "PostgreSQL", scale.at_once)
        ours = await Segue.sqlite(databases.fresh("segue"), scale.at_once)
        for store in (theirs, ours):
            await store.populate(range(scale.some), 1, random.Random(1))
        messages = max(1, scale.messages // 5)
        alone = await race([theirs.turns, ours.turns], heats(order(scale.some), 50, messages))
        grouped = await race([theirs.together, ours.together], heats(order(scale.some), 100, messages))
        for how, (server_pace, file_pace) in (("one at a time", alone), (f"{scale.at_once} at once", grouped)):
            rates = per_second(server_pace.rate), f"Segue on SQLite {per_second(file_pace.rate)}"
            yield Line(
                "postgres", f"turns on PostgreSQL, {how} ({server_pace.turns:,})", *rates, ratio(server_pace, file_pace)
            )
        await theirs.close()
        await ours.close()
