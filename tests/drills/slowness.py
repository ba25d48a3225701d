"""A platform that takes longer for a call than the lease lasts: it is called once, and what it did is recorded once."""

import asyncio
from collections.abc import Sequence

from segue.core.messages import Sending
from tests.changes.world import Engine, raw_sql
from tests.drills.gateways import Plan, start
from tests.drills.town import Town
from tests.forge import kill


async def run(where: str, seconds: Sequence[float], lease: float, sending: Sending) -> list[str]:
    """Let a chat for each of some delays be answered; returns what is wrong."""
    town = Town(len(seconds), seed=1, sending=sending)
    town.slow = dict(zip(town.chats, seconds, strict=True))
    kinds = ["message"] if sending is Sending.KEYED else ["message", "edit"]
    async with town.platform():
        gateway = await asyncio.to_thread(start, Plan(where, town.port, town.callback, lease=lease, sending=sending))
        await town.ready()
        raw = await raw_sql(Engine.POSTGRES if where.startswith("postgresql://") else Engine.SQLITE, where)
        try:
            await asyncio.gather(*(town.say(chat, f"{chat}-message-1") for chat in town.chats))
            async with asyncio.timeout(3 * max(seconds) + 60):
                # Recorded is when no delivery waits any more.
                sent = 0
                while sent < len(seconds):
                    await asyncio.sleep(0.05)
                    [(sent,)] = await raw("select count(*) from deliveries where sent is not null")
            tries = await raw("select max(attempts), count(*) from deliveries")
        finally:
            await raw.close()
            await asyncio.to_thread(kill, gateway)
    wrong = [] if tries == [(1, len(seconds))] else [f"attempts and deliveries: {tries}"]
    for chat, slow in town.slow.items():
        calls = {kind: town.called[chat, kind] for kind in kinds}
        if calls != dict.fromkeys(kinds, 1) or town.shown(chat) != [f"You said: I am {chat}-message-1"]:
            wrong.append(f"after {slow} s: {calls}, {town.shown(chat)}")
    return wrong
