"""What a peer is asked to do, and the loop in which it does it: a line of JSON in, a line of JSON out."""

import asyncio
import json
import sqlite3
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from bench.texts import ANSWER, QUESTION

__all__ = ["ANSWER", "QUESTION", "Peer", "serve"]


class Peer(Protocol):
    """A store of conversations, as its own documentation says to use it."""

    async def fill(self, conversations: int) -> None:
        """Have so many conversations, in each of which one exchange was had."""
        ...

    async def turn(self, conversation: int) -> None:
        """Keep what was asked, load what was said before, keep the answer."""
        ...

    async def find(self, conversation: int) -> int:
        """Load a conversation; returns how many messages it has."""
        ...

    async def close(self) -> None:
        """Let go of the database."""
        ...


def serve(open_peer: Callable[[Path], Awaitable[Peer]]) -> None:
    """Do what is asked on standard input until it ends."""
    asyncio.run(_serve(open_peer))


async def _serve(open_peer: Callable[[Path], Awaitable[Peer]]) -> None:
    folder = Path(sys.argv[1])
    peers: dict[str, Peer] = {}
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        name = asked["database"]
        if name not in peers:
            peers[name] = await open_peer(folder / f"{name}.db")
        try:
            answer: dict[str, object] = {"seconds": await _answer(peers[name], asked)}
        except sqlite3.OperationalError as error:
            answer = {"failed": str(error)}
        print(json.dumps(answer), flush=True)
    for peer in peers.values():
        await peer.close()


async def _answer(peer: Peer, asked: dict[str, Any]) -> float:
    match asked["do"]:
        case "fill":
            await peer.fill(asked["conversations"])
            return 0.0
        case "turns":
            return await _turns(peer, asked["conversations"], 1)
        case "together":
            return await _turns(peer, asked["conversations"], asked["at_once"])
        case "find":
            return await _find(peer, asked["conversations"])
        case unknown:
            raise ValueError(unknown)


async def _turns(peer: Peer, conversations: Sequence[int], at_once: int) -> float:
    left = iter(conversations)

    async def work() -> None:
        for conversation in left:
            await peer.turn(conversation)

    began = time.perf_counter()
    await asyncio.gather(*[work() for _ in range(at_once)])
    return time.perf_counter() - began


async def _find(peer: Peer, conversations: Sequence[int]) -> float:
    taken = []
    for conversation in conversations:
        began = time.perf_counter()
        found = await peer.find(conversation)
        taken.append(time.perf_counter() - began)
        if found < 2:
            raise LookupError(f"conversation {conversation} has {found} messages")
    return statistics.median(taken)
