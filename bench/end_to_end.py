"""Messages end to end: over HTTP into a gateway, through a function as agent, out to the platform's callback.

The rate and the times are this machine's; the processor time and the syncs of a message hardly depend on it.
"""

import time
from collections.abc import AsyncIterator
from pathlib import Path

from bench.databases import LONG_SESSION, Databases
from bench.people import quantile
from bench.served import served
from bench.servers import server
from bench.table import Line, Target, milliseconds, per_second
from segue.runtime.windows.frames import AnsweredFrame, SayRequest
from tests.runtime.windows.test_cost import looking

_AT_ONCE = (1, 8, 32, 64)
_RATES = {"SQLite": Target(">=", 350, "/s"), "PostgreSQL": Target(">=", 175, "/s")}
_CPU = Target("<=", 3, "ms")
_ACCEPTED = Target("<", 5, "ms")
_SHORT = 400
"""Messages of eight people, after whom eight others come."""
_WARM, _TYPED = 5, 30
"""Messages that are typed into a window before the clock runs, and then."""


async def messages(databases: Databases) -> AsyncIterator[Line]:
    """The rate of a gateway, what it takes of a processor for each message, and how long people wait."""
    async for line in _messages("SQLite", str(databases.fresh("messages")), databases.scale.said):
        yield line
    async with server() as dsn:
        async for line in _messages("PostgreSQL", dsn, databases.scale.said):
            yield line


async def _messages(name: str, where: str, said: int) -> AsyncIterator[Line]:
    async with served(where) as gateway:
        await gateway.people.talk(max(_AT_ONCE), 4 * max(_AT_ONCE))
        for at_once in _AT_ONCE:
            before = await gateway.cost()
            taken = await gateway.people.talk(at_once, max(said, 4 * at_once))
            cpu = (await gateway.cost()).since(before).cpu / len(taken.answered)
            waits = ", ".join(milliseconds(quantile(taken.answered, share)) for share in (0.5, 0.95))
            what = f"{name}, {at_once} at once"
            rate = _RATES[name] if at_once == 32 else None
            yield Line("messages", what, per_second(taken.rate), f"p50, p95 {waits}", None, rate, taken.rate)
            bound = _CPU if at_once == 32 and name == "SQLite" else None
            yield Line("messages", f"{what}: CPU a message", milliseconds(cpu), "", None, bound, cpu * 1000)
            if at_once == 1:
                p50 = quantile(taken.accepted, 0.5)
                yield Line("messages", f"{what}: 202, p50", milliseconds(p50), "", None, _ACCEPTED, p50 * 1000)


async def synced(databases: Databases) -> AsyncIterator[Line]:
    """How often the disk must say that it has something, for a message and its answer."""
    async with served(str(databases.fresh("synced")), counts_syncs=True) as gateway:
        for at_once, most in ((1, Target("<=", 3)), (64, Target("<", 0.3))):
            await gateway.people.talk(at_once, 4 * at_once)
            before = await gateway.cost()
            taken = await gateway.people.talk(at_once, max(200, 8 * at_once))
            syncs = (await gateway.cost()).since(before).syncs / len(taken.answered)
            what = f"fsyncs a message end to end, {at_once} at once"
            yield Line("synced", what, f"{syncs:.2f}", "", None, most, round(syncs, 2))


async def memory(databases: Databases) -> AsyncIterator[Line]:
    """Memory that turns take for ever: transcripts are kept up to a limit, which is reached before the first look."""
    turns = databases.scale.soaked
    async with served(str(databases.fresh("memory"))) as gateway:
        for n in range(turns * 5 // 2 // _SHORT):
            await gateway.people.talk(8, _SHORT, f"before-{n}")
        before = (await gateway.cost()).memory / 1e6
        for n in range(turns // _SHORT):
            await gateway.people.talk(8, _SHORT, f"after-{n}")
        after = (await gateway.cost()).memory / 1e6
    what = f"memory after {turns:,} turns more"
    beside = f"{before:.1f} MB before"
    yield Line("memory", what, f"{after:.1f} MB", beside, after / before, Target("<=", 1.2))


async def long_sessions(databases: Databases) -> AsyncIterator[Line]:
    """A message in a session of so many entries, beside one in a session of ten."""
    costs: dict[int, float] = {}
    windows: dict[int, float] = {}
    few, many = databases.scale.long[0], databases.scale.long[-1]
    for entries in databases.scale.long:
        path = await databases.long_session(entries)
        async with served(str(path)) as gateway:
            await gateway.people.talk(1, 10, LONG_SESSION)
            await gateway.rest()
            before = await gateway.cost()
            taken = await gateway.people.talk(1, 50, LONG_SESSION)
            costs[entries] = (await gateway.cost()).since(before).cpu / len(taken.answered)
        windows[entries] = await _window(databases.inside(f"window-{entries}"), entries)
        for where, taken_of in (("", costs), (", with a window on it", windows)):
            what = f"CPU a message in a session of {entries:,}{where}"
            cost, beside = taken_of[entries], f"{milliseconds(taken_of[few])} at {few:,}"
            target = Target("<=", 2) if entries == many else None
            yield Line("long", what, milliseconds(cost), beside, cost / taken_of[few], target)


async def _window(folder: Path, entries: int) -> float:
    """Seconds of a processor for a message that is typed into a window, gateway and all."""
    async with looking(folder, entries) as looker:
        before = 0.0
        for n in range(-_WARM, _TYPED):
            if n == 0:
                before = time.process_time()
            looker.seen.clear()
            await looker.window.say(SayRequest(f"m{n}", "tea"))
            await looker.sees(lambda frame: isinstance(frame, AnsweredFrame))
        return (time.process_time() - before) / _TYPED
