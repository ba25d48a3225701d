"""The peers that a user would pick instead: the turns they persist, and finding a conversation among many."""

import random
import statistics
import time
from collections.abc import AsyncIterator

from bench.databases import Databases
from bench.laps import heats, race, ratio
from bench.ours import Segue, place_of
from bench.peers.environment import python
from bench.peers.process import Failed, PeerProcess
from bench.table import Line, milliseconds, per_second

_PEERS = {
    "openai-agents SQLiteSession": "openai_agents",
    "langgraph SQLite saver": "langgraph",
    "google-adk SQLite service": "google_adk",
}


async def peers(databases: Databases) -> AsyncIterator[Line]:
    """Each peer in a process of its own, in turns with Segue."""
    scale = databases.scale
    interpreter = python()
    segue = await Segue.sqlite(databases.fresh("segue"), scale.at_once)
    await segue.populate(range(scale.some), 1, random.Random(1))
    ours_found = await _find(databases)
    numbers = random.Random(4).sample(range(scale.some), k=min(scale.peer_turns, scale.some))
    for name, module in _PEERS.items():
        peer = await PeerProcess.start(name, module, interpreter, databases.inside(module), scale.at_once)
        await peer.fill("some", scale.some)
        await peer.turns(numbers[:5])
        for how, laps, size in (
            ("one at a time", (segue.turns, peer.turns), 20),
            (f"{scale.at_once} at once", (segue.together, peer.together), 100),
        ):
            try:
                ours, theirs = await race(laps, heats(numbers, size, 1))
            except Failed as error:
                yield Line("peers", f"turns, {how}", "", f"{name} failed: {error}")
                continue
            rates = per_second(ours.rate), f"{name} {per_second(theirs.rate)}"
            yield Line("peers", f"turns, {how} ({theirs.turns:,})", *rates, ratio(ours, theirs))
        await peer.fill("many", scale.many)
        found = await peer.find(random.Random(5).choices(range(scale.many), k=scale.times))
        yield Line(
            "peers",
            f"load a conversation of {scale.many:,}: p50",
            milliseconds(ours_found),
            f"{name} {milliseconds(found)}",
            ours_found / found,
        )
        await peer.close()
    await segue.close()


async def _find(databases: Databases) -> float:
    """The median of the seconds in which Segue finds the session of a lane among many, and loads it."""
    many = databases.scale.many
    segue = await Segue.sqlite(await databases.segue(many))
    host = await segue.host()
    taken = []
    for number in random.Random(5).choices(range(many), k=databases.scale.times):
        lane = await segue.store.lane(place_of(number), host)
        began = time.perf_counter()
        session = await segue.store.bound(lane)
        if session is None or len(await segue.store.path(session.id)) < 2:
            raise LookupError(number)
        taken.append(time.perf_counter() - began)
    await segue.close()
    return statistics.median(taken)
