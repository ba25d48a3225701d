"""One session in Telegram, on the page and in two editors at once, while gateway and editors are killed.

Telegram is crabline, each editor the protocol's own client in front of a `segue acp`. Whoever prompts in an editor that
dies prompts again in the next one, under the same id.
"""

import asyncio
import random
import re
import tempfile
from collections import Counter
from contextlib import AsyncExitStack, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path

from acp import RequestError

from segue.core.values import Value
from segue.core.windows import HOSTS
from segue.store import open_store
from segue.testing.waits import Changes
from tests.editors import Editor, editor_of
from tests.forge import kill
from tests.platforms.corners import TelegramCorner, counts
from tests.platforms.gateways import LOG, WIRE, Plan, start
from tests.platforms.windows import Page, is_open
from tests.ports import free_port
from tests.servers.crabline import TOKEN, telegram

SETTINGS = """
owners = ["telegram.bot/501"]

[telegram.bot]
token = "file:telegram-token"
api = "{telegram}"
public = true

[replica]
lease = 0.5
poll = 0.2
grace = 0
"""
TITLE = "Everywhere"
EDITORS = ("zed", "nvim")
PLACES = ("telegram", "page", *EDITORS)
_TOKEN = re.compile(r"(?:telegram|page|zed|nvim)-\d+")
_PATIENCE = 60.0


class Found(Value, frozen=True):
    """What came of it."""

    said: int
    kills: dict[str, int]
    wrong: list[str]

    def __str__(self) -> str:
        return f"{self.said} prompts, kills: {self.kills}, {len(self.wrong)} wrong"


class Seat:
    """Somebody at an editor that dies and is started again."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._stack = AsyncExitStack()
        self.editor: Editor | None = None
        self.changes = Changes()

    async def open(self, session: str) -> None:
        """Start an editor and load the session in it."""
        editor, _ = await self._stack.enter_async_context(editor_of(self._home))
        await editor.load(session)
        self.editor = editor
        self.changes.tell()

    async def kill(self) -> None:
        """It dies at once."""
        self.editor = None
        await self._stack.aclose()

    async def here(self) -> Editor:
        """The editor, as soon as there is one."""
        return await self.changes.until(lambda: self.editor, lambda: "there is no editor")


class Town:
    """The gateway, the places, and what is said there."""

    def __init__(self, plan: Plan, corner: TelegramCorner, dice: random.Random) -> None:
        self.home = Path(plan.home)
        self.said: dict[str, list[str]] = {place: [] for place in PLACES}
        self.kills: Counter[str] = Counter()
        self.session = ""
        self.seats = {name: Seat(self.home) for name in EDITORS}
        self.page: Page
        self._plan = plan
        self._corner = corner
        self._dice = dice
        self._process: BaseProcess | None = None

    async def start(self) -> None:
        """Run a gateway, until it takes messages in."""
        process = self._process = await asyncio.to_thread(start, self._plan)
        async with asyncio.timeout(_PATIENCE):
            while not await is_open(self.home):
                assert process.is_alive(), f"it ended: {(self.home / LOG).read_text()}"
                await asyncio.sleep(0.02)

    async def stop(self) -> None:
        """End the gateway as a power cut would."""
        if self._process is not None:
            await asyncio.to_thread(kill, self._process)

    async def begin(self) -> None:
        """One session in all places."""
        await self.page.says("hello")
        await self.page.says(f"/title {TITLE}")
        await self.page.tells(TITLE)
        await self._corner.says(f"/resume {TITLE}")
        await counts(self._corner, 1)
        async with await open_store(self.home / "segue.db") as store:
            self.session = await store.find(TITLE, await store.person(HOSTS[0]))
        for seat in self.seats.values():
            await seat.open(self.session)

    async def talk(self, place: str, count: int) -> None:
        """Say so many things in a place."""
        for n in range(1, count + 1):
            text = f"{place}-{n}"
            self.said[place].append(text)
            if place == "telegram":
                await self._corner.says(text)
            elif place == "page":
                await self.page.says(text)
            else:
                await self._prompt(self.seats[place], text)
            await asyncio.sleep(self._dice.expovariate(1 / 0.2))

    async def _prompt(self, seat: Seat, text: str) -> None:
        while True:
            editor = await seat.here()
            with suppress(ConnectionError, RequestError):
                await editor.says(self.session, text, messageId=text)
                return
            await asyncio.sleep(0.05)

    async def trouble(self, kills: int) -> None:
        """One death after the other."""
        for n in range(kills):
            await asyncio.sleep(self._dice.uniform(0.2, 1.0))
            who = ("gateway", *EDITORS)[n % 3]
            self.kills[who] += 1
            if who == "gateway":
                await self.stop()
                await self.start()
            else:
                await self.seats[who].kill()
                await self.seats[who].open(self.session)

    async def settle(self) -> None:
        """Wait until everybody is shown the end."""
        wanted = Counter(token for said in self.said.values() for token in said)

        async def missing() -> bool:
            on_page = Counter(_TOKEN.findall("".join(text for text in self.page.entries if _answers(text))))
            lacks = wanted - on_page
            for seat in self.seats.values():
                assert seat.editor is not None
                lacks += wanted - Counter(_tokens(seat.editor.shows(self.session), "agent"))
            return bool(lacks) or len(await self._on_telegram()) < len(self.said["telegram"])

        async with asyncio.timeout(_PATIENCE):
            while await missing():  # noqa: ASYNC110 -- what is looked at is in several places
                await asyncio.sleep(0.05)

    async def _on_telegram(self) -> list[str]:
        return [token for text in await self._corner.texts() for token in _TOKEN.findall(text)]

    async def compare(self) -> list[str]:
        """Whatever was lost, doubled or out of order, in any window or in the record."""
        async with await open_store(self.home / "segue.db") as store:
            path = await store.path(await store.find(TITLE, await store.person(HOSTS[0])))
        # What is for the agent alone is shown to nobody.
        record = [("agent" if _answers(entry.text) else "person", entry.text) for entry in path if entry.text]
        wrong = []
        for kind in ("person", "agent"):
            tokens = _tokens(record, kind)
            for place in PLACES:
                there = [token for token in tokens if token.startswith(place)]
                if there != self.said[place]:
                    wrong.append(f"{kind} in the record, of {place}: {there}, not {self.said[place]}")
        if self.page.entries != [text for _, text in record]:
            wrong.append(f"the page shows {self.page.entries}, not {record}")
        if (on_telegram := await self._on_telegram()) != self.said["telegram"]:
            wrong.append(f"on Telegram: {on_telegram}, not {self.said['telegram']}")
        for name, seat in self.seats.items():
            assert seat.editor is not None
            wrong += self._compare(name, seat.editor.shows(self.session), record)
        async with editor_of(self.home) as (fresh, _):
            await fresh.load(self.session)
            shown = [text for kind, text in fresh.shows(self.session) if kind in ("person", "agent")]
            if "".join(shown) != "".join(text for _, text in record):
                wrong.append(f"loaded anew, an editor shows {shown}, not {record}")
        return wrong

    def _compare(self, name: str, shown: list[tuple[str, str]], record: list[tuple[str, str]]) -> list[str]:
        """An editor shows every answer, and of what was said all but some of its own prompts."""
        wrong = []
        if (answers := _tokens(shown, "agent")) != _tokens(record, "agent"):
            wrong.append(f"answers in {name}: {answers}, not {_tokens(record, 'agent')}")
        said, wanted = _tokens(shown, "person"), _tokens(record, "person")
        if [token for token in said if not token.startswith(name)] != [t for t in wanted if not t.startswith(name)]:
            wrong.append(f"said in {name}: {said}, not {wanted}")
        if any(count > 1 for count in Counter(said).values()):
            wrong.append(f"doubled in {name}: {said}")
        return wrong


def _answers(text: str) -> bool:
    return text.startswith("You said: ")


def _tokens(shown: list[tuple[str, str]], kind: str) -> list[str]:
    return [token for who, text in shown if who == kind for token in _TOKEN.findall(text)]


async def run(each: int, kills: int, seed: int) -> Found:
    """Say so many things in each of four places, while so many processes die; then compare."""
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="segue-editors-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        home = folder / "home"
        home.mkdir(mode=0o700)
        async with telegram(folder) as (between, url):
            (home / "segue.toml").write_text(SETTINGS.format(telegram=url))
            (home / "telegram-token").write_text(TOKEN)
            (home / WIRE).touch()
            town = Town(Plan(str(home), free_port()), TelegramCorner(between, "501"), dice)
            await town.start()
            town.page = await Page.sign_in(home)
            following = asyncio.create_task(town.page.follow())
            try:
                await town.begin()
                async with asyncio.TaskGroup() as group:
                    for place in PLACES:
                        group.create_task(town.talk(place, each))
                    group.create_task(town.trouble(kills))
                await town.settle()
                wrong = await town.compare()
            finally:
                following.cancel()
                for seat in town.seats.values():
                    await seat.kill()
                await town.stop()
    return Found(each * len(PLACES), dict(town.kills), wrong)
