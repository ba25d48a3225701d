"""One session on Telegram, Matrix, Slack, Discord and the page at once, while each and the gateway go and come back.

Somebody talks in all five places. Telegram is crabline, which forgets what it was told when it ends: so it is stopped
when the gateway has been told everything, which isn't to say that it has taken it in; what it has not is told again.
"""

import asyncio
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import httpx2
from starlette.responses import Response

from segue.core.lanes import Address
from segue.core.messages import PLACEHOLDER
from segue.core.values import Value
from segue.core.windows import HOSTS
from segue.store import open_store
from tests.platforms.corners import counts
from tests.platforms.windows import Page
from tests.platforms.world import World, world
from tests.servers.homeserver import Synapse

TITLE = "Everywhere"
PLACES = ("telegram", "matrix", "slack", "discord", "page")
_TOKEN = re.compile(rf"(?:{'|'.join(PLACES)})-\d+")
_SETTLE = 60.0
"""Seconds without anything new after which what isn't answered never will be."""
_FORGETS = 0.3


class Found(Value, frozen=True):
    """What came of it."""

    said: dict[str, int]
    """Messages in each place."""
    outages: dict[str, int]
    wrong: list[str]
    again: int
    """Messages that Telegram told once more."""
    stray: int
    """Placeholders that were left on Telegram."""

    def __str__(self) -> str:
        said = ", ".join(f"{count} on {place}" for place, count in self.said.items())
        gone = ", ".join(f"{what} {count} times" for what, count in self.outages.items())
        return f"said {said}; {gone}; {self.again} told again; {self.stray} stray placeholders; {len(self.wrong)} wrong"


class Everywhere:
    """Somebody who talks in five places, and what goes wrong there."""

    def __init__(self, town: World, synapse: Synapse, page: Page, dice: random.Random) -> None:
        self.town = town
        self.synapse = synapse
        self.page = page
        self.dice = dice
        self.said: dict[str, list[str]] = {place: [] for place in PLACES}
        self.outages: Counter[str] = Counter()
        self.again = 0
        """Messages that Telegram told once more."""
        assert town.slack is not None
        assert town.discord is not None
        self.slack, self.discord = town.slack, town.discord.private
        self._telegram = asyncio.Lock()
        """Held while somebody writes there, and while it is gone."""
        self._messages: list[int] = []

    async def begin(self) -> None:
        """One session in all five places."""
        await self.page.says("hello")
        await self.page.says(f"/title {TITLE}")
        await self.page.tells(TITLE)
        for corner in (self.town.telegram, self.town.matrix, self.slack, self.discord):
            await corner.says(f"/resume {TITLE}")
            await counts(corner, 1)

    async def talk(self, place: str, until: float) -> None:
        """Say one thing after the other in a place."""
        say = {"telegram": self._on_telegram, "matrix": self._on_matrix}.get(place, partial(self._on, place))
        while time.monotonic() < until:
            await say()
            await asyncio.sleep(self.dice.expovariate(1 / 0.6))

    def _next(self, place: str) -> str:
        """What is said next there; its number is its place in the order."""
        text = f"{place}-{len(self.said[place]) + 1}"
        self.said[place].append(text)
        return text

    async def _on(self, place: str) -> None:
        said: dict[str, Callable[[str], Awaitable[object]]] = {
            "page": self.page.says,
            "slack": self.slack.says,
            "discord": self.discord.says,
        }
        await said[place](self._next(place))

    async def _on_telegram(self) -> None:
        async with self._telegram:
            await self._write_on_telegram()

    async def _write_on_telegram(self) -> None:
        self._messages.append(int(await self.town.telegram.says(self._next("telegram"))))

    async def _on_matrix(self) -> None:
        """The same transaction until the homeserver has answered, as people's programs do."""
        text = self._next("matrix")
        path = f"/rooms/{quote(self.town.matrix.chat)}/send/m.room.message/{uuid4().hex}"
        while True:
            with suppress(httpx2.TransportError):
                await self.town.people["Ann"].call("PUT", path, {"msgtype": "m.text", "body": text, "m.mentions": {}})
                return
            await asyncio.sleep(0.1)

    async def kill_gateway(self) -> None:
        """The gateway dies, and another one comes."""
        await self.town.kill()
        await asyncio.sleep(self.dice.uniform(0.0, 1.0))
        await self.town.start()

    async def stop_telegram(self) -> None:
        """Telegram is gone for a while."""
        between = self.town.telegram.between
        await self._on_telegram()
        await self.town.telegram.until(self._something_answered, self._said_on_telegram)
        async with self._telegram:
            await between.changes.until(lambda: self._all_told() or None, lambda: "Telegram is never asked")
            between.refuse = lambda _method, _body: Response("down", 502)
            await between.telegram.stop()
            await asyncio.sleep(self.dice.uniform(0.5, 2.0))
            await between.telegram.start()
            # Its next message takes an id that nothing has had, though it has forgotten them all.
            await self._write_on_telegram()
            await self._tell_again()
            between.refuse = lambda _method, _body: None

    async def _tell_again(self) -> None:
        """What the gateway hasn't said it has, as Telegram does; and all that was answered, as it may."""
        between = self.town.telegram.between
        polls = [body for method, body in between.calls if method == "getUpdates"]
        had = max((int(body["offset"]) for body in polls if "offset" in body), default=0)
        answered = set(await self._answered("telegram"))
        for update in between.told:
            if update["update_id"] >= had or update["message"].get("text") in answered:
                between.tell(update)
                self.again += 1

    async def _something_answered(self) -> bool:
        """Whether there is anything on Telegram that may be told again."""
        return bool(await self._answered("telegram"))

    async def _said_on_telegram(self) -> str:
        return f"nothing is answered on Telegram: {await self._replies('telegram')}"

    def _all_told(self) -> bool:
        told = {update["message"]["message_id"] for update in self.town.telegram.between.told if "message" in update}
        return told.issuperset(self._messages)

    async def stop_matrix(self) -> None:
        """The homeserver dies, and comes back."""
        await asyncio.to_thread(self.synapse.kill)
        await asyncio.sleep(self.dice.uniform(0.0, 1.0))
        await asyncio.to_thread(self.synapse.start)

    async def stop_slack(self) -> None:
        """Slack is out of reach, and tells nothing of what is said meanwhile."""
        await self.slack.goes()
        await self._on("slack")
        await asyncio.sleep(self.dice.uniform(0.0, 2.0))
        self.slack.comes()

    async def stop_discord(self) -> None:
        """Discord is out of reach; it may have forgotten by then who listened."""
        town = self.discord.town
        await town.cut()
        await self._on("discord")
        await asyncio.sleep(self.dice.uniform(0.0, 2.0))
        if self.dice.random() < _FORGETS:
            town.forget()
        town.away = False

    async def trouble(self, until: float, pause: float) -> None:
        """One outage after the other, each of them at least once; two may meet."""
        kinds: dict[str, Callable[[], Awaitable[None]]] = {
            "the gateway was killed": self.kill_gateway,
            "Telegram was gone": self.stop_telegram,
            "Matrix was gone": self.stop_matrix,
            "Slack was gone": self.stop_slack,
            "Discord was gone": self.stop_discord,
        }
        order = list(kinds)
        while time.monotonic() < until or len(self.outages) < len(kinds):
            kind = order.pop(0) if order else self.dice.choice(list(kinds))
            self.outages[kind] += 1
            await kinds[kind]()
            await asyncio.sleep(self.dice.expovariate(1 / pause))

    async def settle(self) -> None:
        """Wait until everything is answered, or nothing new comes any more."""
        seen, at = -1, time.monotonic()
        while (left := await self._unanswered()) and time.monotonic() - at < _SETTLE:
            if len(left) != seen:
                seen, at = len(left), time.monotonic()
            await asyncio.sleep(0.2)

    async def _unanswered(self) -> list[str]:
        answered = {place: set(await self._answered(place)) for place in PLACES}
        return [text for place in PLACES for text in self.said[place] if text not in answered[place]]

    async def _answered(self, place: str) -> list[str]:
        """What the agent's replies in a place answer, in their order."""
        return [token for reply in await self._replies(place) for token in _TOKEN.findall(reply)]

    async def _replies(self, place: str) -> list[str]:
        if place == "page":
            return [text for text in self.page.entries if text.startswith("You said: page")]
        return await (self.discord if place == "discord" else self.town.home_on(place)).texts()

    async def compare(self) -> list[str]:
        """What was lost, doubled, out of order or mixed up: in each place, on the page, and in the record."""
        wrong = [f"lost: {text}" for text in await self._unanswered()]
        for place in PLACES:
            replied = await self._answered(place)
            wrong += [f"doubled in {place}: {token}" for token, count in Counter(replied).items() if count > 1]
            wrong += [f"mixed into {place}: {token}" for token in replied if not token.startswith(place)]
            if replied != sorted(replied, key=_number):
                wrong.append(f"out of order in {place}: {replied}")
        wrong += self._compare_transcript("on the page", self.page.entries[2:])
        async with await open_store(self.town.home / "segue.db") as store:
            path = await store.path(await store.find(TITLE, await store.person(HOSTS[0])))
        return [*wrong, *self._compare_transcript("in the record", [entry.text for entry in path][2:])]

    def _compare_transcript(self, where: str, texts: list[str]) -> list[str]:
        """Everything was said once and answered once, each place's in its order."""
        wrong = []
        answered = [text.startswith("You said: ") for text in texts]
        for what, wanted in (("said", False), ("answered", True)):
            tokens = [
                token
                for text, is_answer in zip(texts, answered, strict=True)
                if is_answer is wanted
                for token in _TOKEN.findall(text)
            ]
            for place in PLACES:
                there = [token for token in tokens if token.startswith(place)]
                if there != self.said[place]:
                    differing = (
                        Counter(there) - Counter(self.said[place]) + (Counter(self.said[place]) - Counter(there))
                    )
                    wrong.append(f"{what} in {place}, but not {where}, or not once or not in order: {dict(differing)}")
        return wrong

    def stray(self) -> int:
        """Placeholders that a death left behind on Telegram."""
        home = Address("telegram", "bot", "", self.town.telegram.chat)
        return [seen.text for seen in self.town.telegram.between.read(home)].count(PLACEHOLDER)


async def run(seconds: float, seed: int, pause: float = 4.0) -> Found:
    """Talk for so long while things go wrong about as often as that; then let everything settle, and compare."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="segue-everywhere-") as folder, ExitStack() as stack:
        synapse = await asyncio.to_thread(stack.enter_context, Synapse.own())
        async with world(Path(folder), synapse, platforms=("telegram", "slack", "discord")) as town:
            page = await Page.sign_in(town.home)
            following = asyncio.create_task(page.follow())
            everywhere = Everywhere(town, synapse, page, dice)
            await everywhere.begin()
            until = time.monotonic() + seconds
            async with asyncio.TaskGroup() as group:
                for place in PLACES:
                    group.create_task(everywhere.talk(place, until))
                group.create_task(everywhere.trouble(until, pause))
            await everywhere.settle()
            wrong = await everywhere.compare()
            following.cancel()
            said = {place: len(texts) for place, texts in everywhere.said.items()}
            return Found(said, dict(everywhere.outages), wrong, everywhere.again, everywhere.stray())


def _number(token: str) -> int:
    return int(token.rpartition("-")[2])
