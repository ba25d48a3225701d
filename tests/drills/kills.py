"""kill -9 at random moments under load, with duplicate deliveries; restart; compare notes and transcripts.

Some gateways die before they are ready, some while they take over what the one before them held.
"""

import asyncio
import random

from tests.drills.gateways import Plan, start
from tests.drills.planting import Bug
from tests.drills.town import Report, Town
from tests.forge import kill

_EARLY, _LATE = 0.2, 0.2
"""The shares of kills before a gateway is ready, and once it may take over what was held."""


async def run(
    where: str, kills: int, seed: int, people: int = 8, patience: float = 60.0, bug: Bug = Bug.NONE, lease: float = 0.5
) -> Report:
    """Kill a gateway so many times while people talk to it, then let it finish."""
    chance = random.Random(seed)
    town = Town(people, seed)
    async with town.platform():
        plan = Plan(where, town.port, town.callback, pace=0.01, bug=bug, lease=lease)
        town.start_talking()
        for _ in range(kills):
            gateway = await asyncio.to_thread(start, plan)
            when = chance.random()
            try:
                if when >= _EARLY:
                    async with asyncio.timeout(90):
                        await town.ready()
                await asyncio.sleep(
                    chance.uniform(0.9, 1.3) * lease if when > 1 - _LATE else chance.expovariate(1 / 0.15)
                )
            finally:
                await asyncio.to_thread(kill, gateway)
        gateway = await asyncio.to_thread(start, plan)
        try:
            async with asyncio.timeout(90):
                await town.ready()
            async with asyncio.timeout(90):
                # A starved machine takes nothing in before it is killed: without a message nothing is shown.
                while len(town.accepted) <= kills:  # noqa: ASYNC110 -- many hear what is accepted
                    await asyncio.sleep(0.05)
            await town.finish_talking()
            await town.settle(patience)
        finally:
            await asyncio.to_thread(kill, gateway)
        return await town.compare_transcripts(where)
