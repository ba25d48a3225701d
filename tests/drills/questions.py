"""Questions under fire: an agent asks before it does anything, answers race each other, and gateways are killed."""

import asyncio
import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from segue.core.values import Value
from tests.clients import http_client
from tests.drills.gateways import Mind, Plan, start
from tests.drills.planting import Bug
from tests.drills.town import Town
from tests.forge import kill

_ANSWERS = ("yes", "no")


class Found(Value, frozen=True):
    """What a round showed."""

    asked: int
    wrong: tuple[str, ...]


class Quiz:
    """People who are asked, and answer in every way at once."""

    def __init__(self, town: Town, seed: int) -> None:
        self._town = town
        self._random = random.Random(seed)
        self._known: set[str] = set()
        self.said: dict[str, set[str]] = {}
        """By chat, the answers that whoever is asked gave."""

    async def answer(self) -> None:
        """Answer whatever is asked, until cancelled."""
        while True:
            for chat in self._town.chats:
                for call in self._town.calls(chat):
                    if call["choices"] and call["key"] not in self._known:
                        self._known.add(call["key"])
                        await self._all_at_once(chat, call)
            await asyncio.sleep(0.02)

    async def _all_at_once(self, chat: str, call: dict[str, Any]) -> None:
        """Two ways for whoever is asked, which may differ, and somebody else's try."""
        own = self.said.setdefault(chat, set())
        ways: list[dict[str, Any]] = []
        for way in self._random.sample(("press", "reply", "words", "command"), 2):
            said = self._random.choice(_ANSWERS)
            own.add(said)
            ways.append(_way(way, said, call))
        # Whoever isn't asked says yes to everything.
        other = {"person": {"id": "somebody else", "name": "Eve"}, **_way("press", "yes", call)}
        async with http_client(timeout=5.0) as client:
            ids = [f"{call['key']}/answer-{n}" for n in range(len(ways) + 1)]
            says = [self._town.post(client, chat, id, **way) for id, way in zip(ids, [*ways, other], strict=True)]
            self._random.shuffle(says)
            await asyncio.gather(*says)


def _way(way: str, said: str, call: dict[str, Any]) -> dict[str, Any]:
    match way:
        case "press":
            return {"text": "", "pressed": {"message": call["key"], "choice": said}}
        case "reply":
            return {"text": said, "quotes": call["key"]}
        case "command":
            return {"text": f"/{said}"}
        case _:
            return {"text": said}


async def run(
    where: str, people: int, seed: int, kills: int = 6, deadline: float = 86_400.0, bug: Bug = Bug.NONE
) -> Found:
    """Each of so many people has something done that they are asked about; with a deadline, nobody answers."""
    chance = random.Random(seed)
    town = Town(people, seed)
    quiz = Quiz(town, seed)
    with TemporaryDirectory(prefix="segue-drill-") as scratch:
        ledger = Path(scratch) / "done"
        async with town.platform():
            callback = town.callback
            plan = Plan(where, town.port, callback, mind=Mind.ASKS, spy=str(ledger), deadline=deadline, bug=bug)
            gateway = await asyncio.to_thread(start, plan)
            await _ready(town)
            answers = asyncio.create_task(quiz.answer()) if deadline > 60 else None
            wants = [asyncio.create_task(town.say(chat, f"{chat}-wish")) for chat in town.chats]
            for _ in range(kills):
                await asyncio.sleep(chance.expovariate(1 / 0.3))
                await asyncio.to_thread(kill, gateway)
                gateway = await asyncio.to_thread(start, plan)
                await _ready(town)
            async with asyncio.timeout(60):
                await asyncio.gather(*wants)
            try:
                await _over(town)
            finally:
                if answers is not None:
                    answers.cancel()
                await asyncio.to_thread(kill, gateway)
        done = ledger.read_text().splitlines() if ledger.exists() else []
    return Found(people, tuple(_wrong(town, quiz, done)))


async def _ready(town: Town) -> None:
    async with asyncio.timeout(30):
        await town.ready()


def _ends(town: Town, chat: str) -> list[str]:
    """What the agent said once it had its answer."""
    return [text for text in town.texts(chat) if text.startswith(("Did ", "Left "))]


async def _over(town: Town) -> None:
    """Wait until everybody has been answered, or nothing has come for long."""
    for _ in range(300):
        if all(_ends(town, chat) for chat in town.chats):
            return
        await asyncio.sleep(0.1)


def _wrong(town: Town, quiz: Quiz, done: list[str]) -> list[str]:
    wrong: list[str] = []
    for chat in town.chats:
        ends = _ends(town, chat)
        told = {text.partition("Answered: ")[2].split()[0] for text in town.texts(chat) if "Answered: " in text}
        told |= {"yes" if text.startswith("Did") else "no" for text in ends if told}
        decided = {line.rpartition("\t")[2] for line in done if line.startswith(f"{chat}\t")}
        if len(ends) != 1:
            wrong.append(f"{chat}: stuck or doubled: {ends}")
        if len(decided) > 1:
            wrong.append(f"{chat}: decided twice: {sorted(decided)}")
        if "yes" in decided and "yes" not in quiz.said.get(chat, set()):
            wrong.append(f"{chat}: done without a yes")
        if len(told) > 1:
            wrong.append(f"{chat}: told twice: {sorted(told)}")
    return wrong
