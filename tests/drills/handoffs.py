"""Handoffs raced by messages, resets, resumes, second handoffs, cancels, time-outs and kills at every step.

Everybody in town has two private chats, a laptop and a phone, and hands conversations off between them. A race is one
person's handoff and all that happens to it. When everything has settled, the record and the platform are compared.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from msgspec.structs import replace

from segue.core.contracts.probes import Point
from segue.core.values import Value
from tests.changes.invariants import violations
from tests.changes.world import Engine, RawSql, raw_sql
from tests.drills.gateways import Plan, start
from tests.drills.town import Town
from tests.forge import kill

POINTS = (
    None,
    Point.HANDOFF_CLAIMED,
    Point.HANDOFF_OPENED,
    Point.HANDOFF_BOUND,
    Point.TURN_STARTED,
    Point.TURN_ANSWERED,
    Point.TURN_FINISHED,
    Point.SEND_TAKEN,
    Point.SEND_CALLED,
    Point.SEND_RECORDED,
    Point.WRITE_DONE,
    Point.WRITE_COMMITTED,
)
"""Where the gateway dies in the middle of the races; None where it lives."""
PATIENCE = (0.02, 0.3, 0.6, 1.0, 5.0, 5.0)
"""Seconds without progress: the short ones end in the very moment in which the first message is sent."""
PACE = (0.0, 0.05, 0.5, 1.5)
"""Seconds that the agent takes."""
PEOPLE = 5
_STUCK = 20.0
"""Seconds without any change after which what hasn't settled is stuck: a busy machine is slow, and goes on."""
_ENDLESS = 120.0
"""Seconds after which it is stuck, whatever changes."""
_NOBODY = 300.0
"""Seconds after which nobody can be there any more who takes anything in."""
_LEFT = (
    "select 'handoff', id, state, lane, holder, epoch, deadline from handoffs where settled is null",
    "select 'session', id, head, tail, holder, running, due from sessions where head < tail",
    "select 'delivery', key, handoff, holder, attempts, due, error from deliveries where sent is null and dead is null",
)


class Found(Value, frozen=True):
    """What came of some races."""

    handoffs: int
    done: int
    wrong: list[str]


async def run(where: str, lives: int, seed: int) -> Found:
    """Let gateways live, and perhaps die, one after the other while everybody hands off; then settle and compare."""
    dice = random.Random(seed)
    town = Town(0, seed)
    said: list[str] = []
    crowds = [[f"p{life}-{n}" for n in range(PEOPLE)] for life in range(lives)]
    async with town.platform():
        calm = Plan(where, town.port, town.callback, threads=True)
        async with _gateway(town, calm), asyncio.timeout(_NOBODY):
            await asyncio.gather(*(_settle_in(town, who) for crowd in crowds for who in crowd))
        races: list[asyncio.Task[None]] = []
        for crowd in crowds:
            races += [asyncio.create_task(_race(town, who, said, random.Random(dice.random()))) for who in crowd]
            async with _gateway(town, _deadly(calm, dice)):
                await asyncio.wait(races, timeout=1.5)
        # The last one takes nothing over from itself: on a busy machine a short lease would end before its calls do.
        async with _gateway(town, replace(calm, lease=5.0)):
            async with asyncio.timeout(_NOBODY):
                await asyncio.gather(*races)
            wrong = await _settled(where)
        wrong += [f"never answered: {message}" for message in said if not town.answered(message)]
    raw = await _raw(where)
    wrong += await _compare(raw, town)
    wrong += await violations(raw)
    [(total,)] = await raw("select count(*) from handoffs")
    [(done,)] = await raw("select count(*) from handoffs where state = 'done'")
    await raw.close()
    return Found(total, done, wrong)


def _deadly(calm: Plan, dice: random.Random) -> Plan:
    """A gateway with little patience, perhaps slow, that perhaps dies."""
    return replace(
        calm,
        pace=dice.choice(PACE),
        patience=dice.choice(PATIENCE),
        dies_at=dice.choice(POINTS),
        dies_after=dice.randint(1, 2 * PEOPLE),
    )


@asynccontextmanager
async def _gateway(town: Town, plan: Plan) -> AsyncIterator[None]:
    """A gateway that lives at most until the block ends."""
    process = await asyncio.to_thread(start, plan)
    ready = asyncio.create_task(town.ready())
    died = asyncio.create_task(asyncio.to_thread(process.join))
    try:
        await asyncio.wait([ready, died], return_when=asyncio.FIRST_COMPLETED)
        yield
    finally:
        ready.cancel()
        await asyncio.to_thread(kill, process)
        await died


async def _raw(where: str) -> RawSql:
    return await raw_sql(Engine.POSTGRES if where.startswith("postgresql://") else Engine.SQLITE, where)


async def _settle_in(town: Town, who: str) -> None:
    """Somebody talks in both of their chats, and gives the conversation on the laptop a title."""
    for chat in ("phone", "laptop"):
        await _says(town, who, chat, f"I am {who}-{chat}-hello-0", "hello")
        await town.answer(f"{who}-{chat}-hello")
    await _says(town, who, "laptop", f"/title {who}", "title")
    await town.answer(f"{who}-laptop-title")


async def _says(town: Town, who: str, chat: str, text: str, message: str) -> None:
    await town.say(f"{who}-{chat}", f"{who}-{chat}-{message}", text=text, person={"id": who, "name": who})


async def _race(town: Town, who: str, said: list[str], dice: random.Random) -> None:
    """Somebody hands their conversation off, and more happens at the same time."""
    typed = [
        ("laptop", f"/handoff alpha:{who}-phone"),
        *dice.choices(
            [
                ("laptop", "said"),
                ("phone", "said"),
                ("laptop", "/new"),
                ("phone", "/new"),
                ("phone", f"/resume {who}"),
                ("laptop", f"/resume {who}"),
                ("phone", f"/handoff alpha:{who}-laptop"),
                ("laptop", f"/handoff alpha:{who}-phone"),
                ("laptop", "/handoff cancel"),
                ("phone", "/handoff cancel"),
                ("laptop", "/undo"),
                ("laptop", "/stop"),
            ],
            k=dice.randint(0, 5),
        ),
    ]
    saying: list[Coroutine[Any, Any, None]] = []
    for n, (chat, text) in enumerate(typed):
        message = f"race-{n}"
        words = f"I am {who}-{chat}-{message}" if text == "said" else text
        said += [f"{who}-{chat}-{message}"] if text == "said" else []
        wait = 0.0 if n == 0 else dice.uniform(0.0, 1.2)
        saying.append(_later(wait, _says(town, who, chat, words, message)))
    await asyncio.gather(*saying)


async def _later(seconds: float, work: Coroutine[Any, Any, None]) -> None:
    await asyncio.sleep(seconds)
    await work


async def _settled(where: str) -> list[str]:
    """Wait until nothing is on its way; what still is after a long time is stuck."""
    raw, loop = await _raw(where), asyncio.get_running_loop()
    left: list[tuple[Any, ...]] = []
    began = changed = loop.time()
    try:
        while now := [row for sql in _LEFT for row in await raw(sql)]:
            if now != left:
                left, changed = now, loop.time()
            if loop.time() > min(changed + _STUCK, began + _ENDLESS):
                return [f"stuck at {time.time():.1f}: {left}, alive: {await raw('select id, expires from replicas')}"]
            await asyncio.sleep(0.02)
    finally:
        await raw.close()
    return []


async def _compare(raw: RawSql, town: Town) -> list[str]:
    """What the record says of each handoff, and what the platform got."""
    wrong = []
    handoffs = await raw("select id, session, origin, lane, state, turn, error from handoffs")
    for id, session, origin, lane, state, turn, error in handoffs:
        started = await raw("select lane, until from bindings where move = $1 and lane = $2", id, lane or "")
        ended = await raw("select session, ended_why from bindings where lane = $1 and ended_move = $2", origin, id)
        carried = await raw(
            "select key, message, address from deliveries where handoff = $1 and message is not null", id
        )
        back = await raw("select id from moves where id = $1", f"{id}/back")
        about = f"handoff {id} ({state}, {error}) from {origin} to {lane}"
        if state == "done":
            if len(started) != 1 or ended != [(session, "handoff")] or back:
                wrong.append(f"{about}: done, but not both sides moved: {started} {ended} {back}")
            if not carried or not all(town.got(key) for key, _, _ in carried):
                wrong.append(f"{about}: done without a delivered message: {carried}")
        else:
            if ended or (lane and not back and started and started[0][1] is None):
                wrong.append(f"{about}: undone, but not on both sides: {started} {ended} {back}")
            out = [key for key, _, _ in carried if town.got(key)] if turn else []
            if out and not town.got(f"handoff/{id}/stayed"):
                wrong.append(f"{about}: a message slipped out and nobody said where the conversation is: {out}")
    return wrong
