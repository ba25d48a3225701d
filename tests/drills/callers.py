"""Callers who send nothing, half a head, or read nothing: everybody else is served, and they are let go."""

import asyncio
from contextlib import AsyncExitStack

from segue.runtime.server.callers import CallerLimits
from segue.runtime.server.listeners import Listener, serving
from segue.testing.waits import PATIENCE
from tests.clients import http_client
from tests.drills.planting import Bug, planted
from tests.runtime.server.test_callers import APP, HALF, LARGE, OPENS, caller, closed

KINDS = {"nothing": b"", "half a head": HALF, "no reader": 30 * LARGE, "no close": OPENS}


async def run(connections: int, bug: Bug = Bug.NONE, patience: float = PATIENCE) -> list[str]:
    """Let a server have so many connections and three times as many callers of each kind; returns what is wrong."""
    wrong: list[str] = []
    with planted(*bug.patches):
        for kind, sent in KINDS.items():
            if not await _serves_others(sent, connections, patience):
                wrong.append(f"{kind}: somebody else isn't served")
            if not await _lets_go(sent, patience):
                wrong.append(f"{kind}: the connection is kept for ever")
    return wrong


async def _serves_others(sent: bytes, connections: int, patience: float) -> bool:
    """Whether somebody is served beside callers who have long deadlines."""
    listener, limits = Listener("127.0.0.1", 0), CallerLimits(connections=connections, head=600.0, stalled=600.0)
    async with serving(APP, listener, 0.0, limits), AsyncExitStack() as stack, http_client() as ask:
        for _ in range(3 * connections):
            await stack.enter_async_context(caller(listener, sent))
        try:
            async with asyncio.timeout(patience):
                return (await ask.get(f"{listener.url}/healthz")).status_code == 200
        except TimeoutError:
            return False


async def _lets_go(sent: bytes, patience: float) -> bool:
    """Whether a caller's connection is closed once their time is over, though the server has room."""
    listener, limits = Listener("127.0.0.1", 0), CallerLimits(head=0.1, stalled=0.1)
    async with serving(APP, listener, 0.0, limits), caller(listener, sent) as connection:
        try:
            async with asyncio.timeout(patience):
                await closed(connection)
        except TimeoutError:
            return False
    return True
