"""Budgets under a rush: everybody talks at once to two gateways that share one budget, and one of them is killed."""

import asyncio
import random
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2
from msgspec.structs import replace

from segue.core.values import Value
from tests.changes.world import Engine, raw_sql
from tests.drills.gateways import Mind, Plan, Spends, start
from tests.drills.planting import Bug
from tests.drills.town import Town
from tests.forge import kill
from tests.ports import free_port

_USED_UP = "is used up"


class Rush(Value, frozen=True):
    """What came of it."""

    tries: int
    called: int
    """Turns that called their model."""
    tokens: int
    """Tokens that were spent."""
    wrong: tuple[str, ...]


async def run(
    where: str, people: int, seed: int, turns: int = 0, tokens: int = 0, kills: int = 1, bug: Bug = Bug.NONE
) -> Rush:
    """Everybody says one thing at once; a budget has room for so many turns, or for so many tokens."""
    chance, town = random.Random(seed), Town(people, seed)
    with TemporaryDirectory(prefix="segue-drill-") as scratch:
        ledger = Path(scratch) / "called"
        async with town.platform():
            first = Plan(where, town.port, town.callback, pace=0.05, bug=bug, turns=turns, tokens=tokens)
            first = replace(first, mind=Mind.SPENDS, spy=str(ledger))
            plans = [first, replace(first, port=free_port())]
            # The second finds the database as the first made it.
            gateways = []
            for plan in plans:
                gateways.append(await asyncio.to_thread(start, plan))
                await _ready(town, plan.port)
            try:
                says = [asyncio.create_task(_say(town, chat, plans[n % 2].port)) for n, chat in enumerate(town.chats)]
                for _ in range(kills):
                    await asyncio.sleep(chance.uniform(0.05, 0.5))
                    await asyncio.to_thread(kill, gateways[1])
                    gateways[1] = await asyncio.to_thread(start, plans[1])
                async with asyncio.timeout(120):
                    await asyncio.gather(*says)
                    stuck = await _answered(town)
            finally:
                for gateway in gateways:
                    await asyncio.to_thread(kill, gateway)
        called = set(ledger.read_text().split()) if ledger.exists() else set()
    spent = await _spent(where)
    return Rush(people, len(called), spent, tuple(_wrong(town, called, spent, (turns, tokens), kills, stuck)))


async def _ready(town: Town, port: int) -> None:
    first, town.port = town.port, port
    try:
        async with asyncio.timeout(60):
            await town.ready()
    finally:
        town.port = first


async def _say(town: Town, chat: str, port: int) -> None:
    """Say it until it is acknowledged, also by a gateway that comes up again."""
    while True:
        try:
            if (await town.call(chat, f"{chat}-wish", port)).status_code in {200, 202}:
                return
        except httpx2.TransportError:
            """It is down."""
        await asyncio.sleep(0.05)


async def _answered(town: Town) -> list[str]:
    """Wait until everybody has an answer; returns who has none though nothing came for long."""
    while missing := [chat for chat in town.chats if not town.texts(chat)]:
        before = len(missing)
        for _ in range(200):
            await asyncio.sleep(0.05)
            if len([chat for chat in town.chats if not town.texts(chat)]) < before:
                break
        else:
            return missing
    return []


async def _spent(where: str) -> int:
    """Tokens that the database knows of."""
    raw = await raw_sql(Engine.POSTGRES if where.startswith("postgresql://") else Engine.SQLITE, where)
    try:
        [[spent]] = await raw("select coalesce(sum(input + output), 0) from usage")
    finally:
        await raw.close()
    return int(spent)


def _wrong(town: Town, called: set[str], spent: int, limit: tuple[int, int], kills: int, stuck: list[str]) -> list[str]:
    turns, tokens = limit
    wrong = [f"{chat}: no answer" for chat in stuck]
    done = [chat for chat in town.chats if "Spent." in town.texts(chat)]
    refused = [chat for chat in town.chats if any(_USED_UP in text for text in town.texts(chat))]
    # What a process had called for when it was killed is reserved no more, and nobody knows what it cost.
    if turns and (len(done) > turns or (not kills and len(called) > turns)):
        wrong.append(f"over: {len(done)} turns of {turns}, {len(called)} begun")
    if tokens and spent > tokens:
        wrong.append(f"over: {spent} tokens of {tokens}")
    if len(town.chats) > len(called) and not refused and not stuck:
        wrong.append("nobody was told that the budget is used up")
    least = min(len(town.chats), turns or len(town.chats), tokens // Spends.BOUND if tokens else len(town.chats))
    if len(called) < least:
        wrong.append(f"under: {len(called)} turns where {least} had room")
    return wrong
