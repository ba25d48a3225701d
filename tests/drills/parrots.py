"""The platform and the agent of the drill of readers: a board that keeps all, and a parrot that tells all."""

import asyncio
import random
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from segue.core.contracts.adapters import Connection, Intake
from segue.core.contracts.agents import Event, Work
from segue.core.lanes import Address
from segue.core.messages import Delivery, Sending, Text, ToolCall, encode_parts, plain_text
from segue.errors import AgentFailed
from segue.testing import Shelf

PLATFORM, ACCOUNT = "wall", "alpha"
PLACES = ("ann", "bob", "cem", "club", "lobby")
"""Chats that the parrot knows of."""
CANARY = re.compile(r"zq\d{5}q")
ERROR = "zq99999q"
"""The canary in the agent's own errors, which only the host is told in private."""
FAILS = "fail"
"""The word that makes the agent fail."""


class Board:
    """A platform that keeps what is sent, takes files, opens threads, and its adapter."""

    platform = PLATFORM
    account = ACCOUNT
    sending = Sending.KEYED
    connection = Connection.ANY
    largest_file = 2**30

    def __init__(self, files: Shelf) -> None:
        self._files = files
        self.posts: dict[str, Delivery] = {}
        self.threads: dict[str, Address] = {}

    async def run(self, intake: Intake) -> None:
        intake.connected()
        await asyncio.Event().wait()

    def fits(self, text: str) -> bool:
        return len(text) <= 100_000

    async def send(self, delivery: Delivery) -> str:
        if delivery.file is not None:
            content = (await self._files.read(delivery.file)).decode()
            delivery = replace(delivery, text=f"{delivery.text}\n{content}")
        self.posts.setdefault(delivery.key, delivery)
        return delivery.key

    async def open_thread(self, parent: Address, title: str, key: str) -> Address:
        del title
        name = f"t{len(self.threads) + 1}"
        return self.threads.setdefault(key, Address(PLATFORM, ACCOUNT, chat=parent.chat, thread=name))


class HushedBoard(Board):
    """One on which a single person can be told something among others."""

    whispers: Literal[True] = True


class Parrot:
    """An agent that tells all that it knows, and asks every tool for more."""

    notes = True

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self.sessions: list[str] = ["none"]
        self.schedules: list[str] = ["none"]
        self._children: defaultdict[str, list[str]] = defaultdict(list)
        """The lasting sessions that each session has started."""
        self._calls = 0
        self.orders: dict[str, tuple[str, dict[str, Any]]] = {}
        """Calls that it is to make when it next answers in a session."""

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        said = [entry.parts for entry in work.transcript] + [draft.parts for draft in work.asked]
        words = [work.context, *map(encode_parts, said)]
        heard = set(CANARY.findall(" ".join(words)))
        if any(plain_text(draft.parts).startswith(FAILS) for draft in work.asked):
            raise AgentFailed(f"The key {ERROR} was refused.", "Get another.", passes=False)
        if order := self.orders.pop(work.session, None):
            name, arguments = order
            self._calls += 1
            told = " ".join(sorted(heard))
            arguments |= {"question": told, "choices": (told, "none")} if name == "ask" else {"message": told}
            await work.tools.call(ToolCall(f"call {self._calls}", name, arguments))
        for _ in range(self._dice.choice((0, 0, 1, 1, 2))):
            self._calls += 1
            [name] = self._dice.choices([*WISHES], [weight for weight, _ in WISHES.values()])
            known = Known(" ".join(sorted(heard)) or "nothing", self._child(work), self._dice.choice(self.schedules))
            arguments = WISHES[name][1](self._dice, known)
            result = await work.tools.call(ToolCall(f"call {self._calls}", name, arguments))
            if name == "sessions_spawn" and not result.failed and arguments["mode"] == "session":
                self._children[work.session].append(result.content["session"])
            heard |= set(CANARY.findall(str(result.content)))
        yield Text(f"I know {' '.join(sorted(heard)) or 'nothing'}")

    def _child(self, work: Work) -> str:
        """Some session: a child of this one, or any that there is."""
        children = self._children[work.session]
        return self._dice.choice(children if children and self._dice.random() < 0.5 else self.sessions)


class Known(NamedTuple):
    """Things that the parrot can put into a call of a tool."""

    words: str
    session: str
    schedule: str


def _asks(dice: random.Random, known: Known) -> dict[str, Any]:
    choices = dice.choice(((), (f"red {known.words[:80]}", f"blue {known.words[-80:]}", "none")))
    return {"question": f"Which? {known.words[:1000]}", "choices": choices}


def _schedules(dice: random.Random, known: Known) -> dict[str, Any]:
    to = dice.choice(("origin", PLATFORM, f"{PLATFORM}:{dice.choice(PLACES)}"))
    return {"task": known.words[:1000], "when": "in 1h", "deliver": to}


def _spawns(dice: random.Random, known: Known) -> dict[str, Any]:
    mode, thread = dice.choice(("run", "session")), dice.choice((False, False, True))
    return {"task": known.words, "mode": mode, "thread": thread, "start": dice.choice(("fresh", "fork"))}


def _sends(dice: random.Random, known: Known) -> dict[str, Any]:
    return {"session": known.session, "message": known.words, "wait": dice.choice((0, 0, 0.1))}


WISHES: dict[str, tuple[int, Callable[[random.Random, Known], dict[str, Any]]]] = {
    "sessions_list": (6, lambda *_: {}),
    "sessions_history": (6, lambda _, known: {"session": known.session}),
    "sessions_send": (4, _sends),
    "sessions_spawn": (4, _spawns),
    "sessions_close": (1, lambda _, known: {"session": known.session}),
    "schedules_list": (2, lambda *_: {}),
    "schedule": (2, _schedules),
    "schedule_cancel": (1, lambda _, known: {"id": known.schedule}),
    "ask": (2, _asks),
    "notes_read": (2, lambda *_: {}),
    "notes_write": (2, lambda _, known: {"text": f"Remember {known.words[:300]}"}),
}
"""The tools, each with how often it is called and its arguments."""
