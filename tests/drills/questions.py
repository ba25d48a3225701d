"""Questions under fire: an agent asks before it does anything, answers race each other, and gateways are killed."""

import asyncio
import random
import re
import time
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2

from segue.core.settings import Streams
from segue.core.values import Value
from tests.clients import http_client
from tests.drills.gateways import Mind, Plan, start
from tests.drills.planting import Bug
from tests.drills.town import Town
from tests.forge import kill

_ANSWERS = ("yes", "no")
_AT_ONCE = 16
"""Connections of all people together."""
_PATIENCE = 300.0
_QUIET, _SOON_QUIET = 30.0, 8.0
"""Seconds without anything new after which nothing more will come, and those where a mistake is planted."""
_END = re.compile(r"(?:Did|Left) chat-\d+\.")


class Found(Value, frozen=True):
    """What a round showed."""

    asked: int
    wrong: tuple[str, ...]


class Quiz:
    """People who are asked, and answer in every way at once, from three places."""

    def __init__(self, town: Town, client: httpx2.AsyncClient, seed: int) -> None:
        self._town = town
        self._client = client
        self._random = random.Random(seed)
        self._known: set[str] = set()
        self.said: defaultdict[str, set[str]] = defaultdict(set)
        """By chat, the answers that whoever is asked gave."""

    async def answer(self) -> None:
        """Answer whatever is asked, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                for call in self._town.posts:
                    if call["choices"] and call["key"] not in self._known:
                        self._known.add(call["key"])
                        group.create_task(self._all_at_once(call))
                await asyncio.sleep(0.02)

    async def _all_at_once(self, call: dict[str, Any]) -> None:
        """Two ways for whoever is asked, which may differ, and somebody else's try."""
        chat = call["address"]["chat"]
        ways: list[dict[str, Any]] = []
        for way in self._random.sample(("press", "reply", "words", "command", "elsewhere", "group"), 2):
            said = self._random.choice(_ANSWERS)
            self.said[chat].add(said)
            ways.append(_way(way, said, call))
        # Whoever isn't asked says yes to everything, from a chat of her own: in a private one she would be an audience.
        eve = {"id": "somebody else", "name": "Eve"}
        ways.append({"chat": "Eve's own", "person": eve, "text": f"/answer {call['question']} yes"})
        self._random.shuffle(ways)
        says = [
            self._town.post(self._client, way.pop("chat", chat), f"{call['key']}/answer-{n}", **way)
            for n, way in enumerate(ways)
        ]
        await asyncio.gather(*says)


def _way(way: str, said: str, call: dict[str, Any]) -> dict[str, Any]:
    chat = call["address"]["chat"]
    own = {"id": f"person of {chat}", "name": chat}
    match way:
        case "press":
            return {"text": "", "pressed": {"message": call["key"], "choice": said}}
        case "reply":
            return {"text": said, "quotes": call["key"]}
        case "command":
            return {"text": f"/{said}"}
        case "elsewhere":
            return {"chat": f"{chat} elsewhere", "person": own, "text": f"/answer {call['question']} {said}"}
        case "group":
            return {"chat": "group", "chat_kind": "group", "person": own, "text": f"/answer {call['question']} {said}"}
        case _:
            return {"text": said}


async def run(
    where: str,
    people: int,
    seed: int,
    kills: int = 6,
    deadline: float = 86_400.0,
    streams: Streams = Streams.WHOLE,
    lease: float = 0.5,
    bug: Bug = Bug.NONE,
) -> Found:
    """Each of so many people has something done that they are asked about; with a deadline, nobody answers.

    Where answers are streamed, the agent has begun to talk when it asks.
    """
    chance = random.Random(seed)
    town = Town(people, seed)
    calls: dict[str, Any] = {
        "limits": httpx2.Limits(max_connections=_AT_ONCE),
        "timeout": httpx2.Timeout(5.0, pool=None),
    }
    with TemporaryDirectory(prefix="segue-drill-") as scratch:
        ledger = Path(scratch) / "done"
        async with town.platform(), http_client(**calls) as client:
            quiz = Quiz(town, client, seed)
            more: dict[str, Any] = {"mind": Mind.ASKS, "spy": str(ledger), "streams": streams, "bug": bug}
            plan = Plan(where, town.port, town.callback, lease, deadline=deadline, **more)
            gateway = await asyncio.to_thread(start, plan)
            await _ready(town)
            answers = asyncio.create_task(quiz.answer()) if deadline > 60 else None
            wants = [asyncio.create_task(town.post(client, chat, f"{chat}-wish")) for chat in town.chats]
            for _ in range(kills):
                await asyncio.sleep(chance.expovariate(1 / 0.3))
                await asyncio.to_thread(kill, gateway)
                gateway = await asyncio.to_thread(start, plan)
                await _ready(town)
            async with asyncio.timeout(_PATIENCE):
                await asyncio.gather(*wants)
            try:
                await _over(town, _QUIET if bug is Bug.NONE else _SOON_QUIET)
            finally:
                if answers is not None:
                    answers.cancel()
                    await asyncio.wait([answers])
                await asyncio.to_thread(kill, gateway)
        done = ledger.read_text().splitlines() if ledger.exists() else []
    return Found(people, tuple(_wrong(town, quiz, done)))


async def _ready(town: Town) -> None:
    async with asyncio.timeout(90):
        await town.ready()


def _texts(town: Town) -> dict[str, list[str]]:
    """What was said in each chat."""
    texts: defaultdict[str, list[str]] = defaultdict(list)
    for call in town.posts:
        texts[call["address"]["chat"]].append(call["text"])
    return texts


def _ends(texts: list[str]) -> list[str]:
    """What the agent said once it had its answer."""
    return [end for text in texts for end in _END.findall(text)]


async def _over(town: Town, quiet: float) -> None:
    """Wait until everybody has been answered, or nothing has come for long."""
    said, until = 0, time.monotonic() + quiet
    while time.monotonic() < until:
        texts = _texts(town)
        if all(_ends(texts[chat]) for chat in town.chats):
            return
        if len(town.posts) > said:
            said, until = len(town.posts), time.monotonic() + quiet
        await asyncio.sleep(0.1)


def _wrong(town: Town, quiz: Quiz, done: list[str]) -> list[str]:
    wrong: list[str] = []
    texts = _texts(town)
    lines: defaultdict[str, set[str]] = defaultdict(set)
    for line in done:
        chat, _, answer = line.partition("\t")
        lines[chat].add(answer)
    for chat in town.chats:
        ends, decided = _ends(texts[chat]), lines[chat]
        told = {text.partition("Answered: ")[2].split()[0] for text in texts[chat] if "Answered: " in text}
        told |= {"yes" if text.startswith("Did") else "no" for text in ends if told}
        if len(ends) != 1:
            wrong.append(f"{chat}: stuck or doubled: {ends}")
        if len(decided) > 1:
            wrong.append(f"{chat}: decided twice: {sorted(decided)}")
        if "yes" in decided and "yes" not in quiz.said[chat]:
            wrong.append(f"{chat}: done without a yes")
        if len(told) > 1:
            wrong.append(f"{chat}: told twice: {sorted(told)}")
    return wrong
