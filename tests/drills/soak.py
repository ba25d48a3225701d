"""Thousands of turns through one gateway over HTTP: it keeps nothing of a turn that is over.

Gateway, people and platform are in this very process, and are looked at twice: after a while, and in the end. What
there is one more of with every second turn is kept for ever.
"""

import asyncio
import gc
import os
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse

from segue.adapters.http import HttpAccount
from segue.core.contracts.agents import Event, Work
from segue.core.messages import Text, ToolCall, plain_text
from segue.core.people import UNBOUNDED
from segue.core.settings import AccountSettings, Streams
from segue.core.values import Secret, Value
from segue.runtime.server.app import Mounted, make_app
from segue.runtime.server.listeners import Listener, serving
from segue.runtime.turns.transcript_cache import TranscriptCache
from segue.testing import Shelf
from tests.adapters.platform import signed
from tests.drills.gateways import ACCOUNT, SECRET
from tests.drills.planting import Bug, Patch, planted
from tests.in_process import gateway_on

PEOPLE = 8
_SESSION = 20
"""Messages after which somebody begins anew, so that what is said before a turn doesn't grow."""
_MEMORY = 2048
"""Bytes that may be held more for each turn: memory is given out in pieces."""
_KEPT = 2 << 20
"""Bytes of transcripts that are kept: as many as a gateway keeps by itself would still become more in the end."""
_MEMORY_OVER = 5_000
"""Turns over which memory is watched: over fewer it says nothing."""


class Held(Value, frozen=True):
    """What this process holds."""

    objects: dict[str, int]
    """How many of each type, of those that the collector of cycles looks at."""
    tasks: int
    descriptors: int
    memory: int


class Found(Value, frozen=True):
    """What came of some turns."""

    turns: int
    before: Held
    after: Held

    @property
    def wrong(self) -> list[str]:
        """What grew with the turns."""
        old, new, most = self.before, self.after, self.turns // 2
        grown = {kind: count - old.objects.get(kind, 0) for kind, count in new.objects.items()}
        found = [f"{more} more of {kind} after {self.turns} turns" for kind, more in grown.items() if more > most]
        if new.tasks > old.tasks + PEOPLE:
            found.append(f"{old.tasks} tasks became {new.tasks}")
        if new.descriptors > old.descriptors + PEOPLE:
            found.append(f"{old.descriptors} descriptors became {new.descriptors}")
        if self.turns >= _MEMORY_OVER and new.memory > old.memory + self.turns * _MEMORY:
            found.append(f"{old.memory:,} bytes became {new.memory:,} over {self.turns} turns")
        return found


def held() -> Held:
    """What this process holds now that isn't about to go."""
    gc.collect()
    kinds = Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
    return Held(kinds, len(asyncio.all_tasks()), len(list(Path("/dev/fd").iterdir())), _memory())


def _memory() -> int:
    """Bytes that this process holds; 0 where the system doesn't tell."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGESIZE") if status.exists() else 0


class Asks:
    """An agent that asks the gateway for something now and then, and fails now and then."""

    def __init__(self) -> None:
        self._turns = 0

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        self._turns += 1
        if self._turns % 50 == 0:
            raise RuntimeError("one of fifty fails at first")
        if self._turns % 10 == 0:
            call = ToolCall(f"call-{self._turns}", "sessions_list", {})
            yield call
            yield await work.tools.call(call)
        yield Text("You said: ")
        yield Text(" + ".join(plain_text(draft.parts) for draft in work.asked))


class Street:
    """A few people who say one thing after the other, each when the last was answered, and their platform."""

    def __init__(self, gateway: str) -> None:
        self._url = f"{gateway}/in/http/{ACCOUNT}"
        self._waiting: dict[str, asyncio.Event] = {}
        self._said = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Take a call of the gateway."""
        call = msgspec.json.decode(await Request(scope, receive).body())
        for message in call["answers"] if call["kind"] == "message" else ():
            self._waiting[message].set()
        await JSONResponse({"id": call["key"]})(scope, receive, send)

    async def talk(self, turns: int) -> None:
        """So many turns, shared out among all."""
        async with httpx2.AsyncClient(timeout=30) as client, asyncio.TaskGroup() as group:
            for n in range(PEOPLE):
                group.create_task(self._talk(client, f"chat-{n}", turns // PEOPLE))

    async def _talk(self, client: httpx2.AsyncClient, chat: str, turns: int) -> None:
        for n in range(turns):
            if n % _SESSION == 0:
                await self._say(client, chat, "/new")
            await self._say(client, chat, "something")

    async def _say(self, client: httpx2.AsyncClient, chat: str, text: str) -> None:
        self._said += 1
        message = f"message-{self._said}"
        answered = self._waiting[message] = asyncio.Event()
        said = {"id": message, "chat": chat, "chat_kind": "dm", "person": {"id": chat, "name": chat}, "text": text}
        body = msgspec.json.encode(said)
        taken = await client.post(self._url, content=body, headers=signed(SECRET, body, time.time()))
        taken.raise_for_status()
        async with asyncio.timeout(60):
            await answered.wait()
        del self._waiting[message]


async def run(where: str, turns: int, bug: Bug = Bug.NONE) -> Found:
    """Look after half of the turns, when what is kept on purpose is there, and again in the end."""
    inwards, outwards = Listener("127.0.0.1", 0), Listener("127.0.0.1", 0)
    street = Street(inwards.url)
    adapter = HttpAccount(Secret(SECRET), f"{outwards.url}/out").adapter(ACCOUNT, Shelf())
    account = AccountSettings(public=True, streams=Streams.WHOLE)
    few = Patch(TranscriptCache, "__init__", lambda make: lambda self, store: make(self, store, _KEPT))
    with planted(few, *bug.patches):
        async with (
            gateway_on(where, Asks(), adapter, account=account, limits=UNBOUNDED, poll=1.0) as gateway,
            serving(make_app(gateway), inwards),
            serving(Mounted(street), outwards),
        ):
            await street.talk(turns // 2)
            before = held()
            await street.talk(turns // 2)
            found = Found(turns // 2, before, held())
        await adapter.close()
    return found
