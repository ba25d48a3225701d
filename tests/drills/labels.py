"""kill -9 at each labelled point of a message's way, then compare notes."""

import asyncio

from msgspec.structs import replace

from segue.core.contracts.probes import Point
from segue.core.messages import Sending
from segue.core.settings import Streams
from tests.drills.gateways import Plan, start
from tests.drills.planting import Bug
from tests.drills.town import Report, Town
from tests.forge import kill

POINTS = {
    Point.WRITE_BEGUN: 25,
    Point.WRITE_DONE: 25,
    Point.WRITE_COMMITTED: 25,
    Point.ACCEPT_COMMITTED: 3,
    Point.TURN_STARTED: 3,
    Point.TURN_JOURNALED: 3,
    Point.TURN_ANSWERED: 3,
    Point.TURN_FINISHED: 3,
    Point.STREAM_OPENED: 2,
    Point.STREAM_SENT: 2,
    Point.STREAM_PLACED: 2,
    Point.SEND_TAKEN: 3,
    Point.SEND_PLACED: 2,
    Point.SEND_CALLED: 3,
    Point.SEND_RECORDED: 3,
}
"""Every label on a message's way, and how often it is passed before the process dies there."""


async def run(
    where: str, point: Point, times: int, seed: int, sending: Sending, streams: Streams, bug: Bug = Bug.NONE
) -> Report:
    """Let a gateway kill itself at a label, again and again, while people talk to it; then let it finish."""
    town = Town(4, seed, sending)
    async with town.platform():
        plan = Plan(where, town.port, town.callback, pace=0.02, sending=sending, streams=streams, bug=bug)
        deadly = replace(plan, dies_at=point, dies_after=POINTS[point])
        town.start_talking()
        for _ in range(times):
            gateway = await asyncio.to_thread(start, deadly)
            try:
                async with asyncio.timeout(60):
                    await asyncio.to_thread(gateway.join)
            finally:
                await asyncio.to_thread(kill, gateway)
        gateway = await asyncio.to_thread(start, plan)
        try:
            async with asyncio.timeout(90):
                # A starved machine takes nothing in before the process dies: without a message nothing is shown.
                while not town.accepted:  # noqa: ASYNC110 -- many hear what is accepted
                    await asyncio.sleep(0.05)
            await town.stop_talking()
            await town.settle(60.0)
        finally:
            await asyncio.to_thread(kill, gateway)
        return town.compare_notes()
