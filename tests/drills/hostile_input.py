"""Hostile input at the door: whatever somebody types, asks of a tool or posts, it is handled, and quickly.

Each case is a command with a hostile argument, a tool call with hostile arguments, or a signed call over HTTP with
hostile fields. A case is wrong if it ends in an error that nobody foresaw, if it takes more than a second of the
processor, if its answer is longer than anybody would read, or if somebody else isn't answered after it.
"""

import json
import random
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from segue import open_store
from segue.adapters.http import Http
from segue.changes.exchange import letters
from segue.core.commands import SPECS
from segue.core.contracts.agents import Event, Work
from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import Arrival, Delivery, Speaker, Text, ToolCall, plain_text
from segue.core.people import UNBOUNDED
from segue.core.settings import AccountSettings, GatewaySettings, Streams
from segue.core.values import Secret, Value
from segue.runtime.gateway import Gateway
from segue.testing import Shelf, WhatsApp
from segue.testing.asgi import post
from segue.testing.waits import Changes
from tests.adapters.platform import signed
from tests.drills.hostile_names import hostile
from tests.drills.planting import Bug, planted

SLOWEST = 1.0
"""Seconds of the processor for one case."""
LONGEST = 12_000
"""Characters of an answer to a command."""
SECRET = "the secret of the door"
_TOOLS = (
    "sessions_spawn sessions_send sessions_list sessions_history sessions_close schedule schedules_list schedule_cancel"
)
_FIELDS = (
    *("task", "message", "label", "session", "mode", "thread", "start", "wait", "when", "deliver", "id", "words"),
    *("count", "before"),
)
_POSTED = (
    *("id", "space", "chat", "chat_kind", "chat_name", "topic", "thread", "text", "quotes", "edits", "deletes"),
    *("chat_aliases", "person", "files", "cites", "pressed", "mentions_agent"),
)
MEAN: tuple[Callable[[random.Random], Any], ...] = (
    lambda dice: hostile(dice, 40),
    lambda dice: "a\u0301" * dice.randrange(20_000),
    lambda dice: "every " + "a and " * dice.randrange(60) + "!",
    lambda dice: f"every {dice.choice(('day', 'monday', '9 hours'))} at {dice.randrange(99)}:{dice.randrange(99)} x",
    lambda dice: f"9999-12-31 23:59 {dice.choice(('America/New_York', 'Asia/Kathmandu', 'UTC', '../x'))} x",
    lambda dice: f"in {dice.randrange(10**9)} {dice.choice(('m', 'years', 'w', ''))} x",
    lambda dice: " ".join(dice.choice("*/0123456789,-#L?") * dice.randrange(1, 9) for _ in range(5)) + " x",
    lambda dice: "9" * dice.randrange(6_000),
    lambda dice: "`" * dice.randrange(11_000),
    lambda dice: dice.choice(("--to ", "— to ", "#", "/")) * dice.randrange(2_000),
    lambda dice: ("x" * dice.randrange(300) + "\n") * dice.randrange(60),
    lambda dice: "%s{0}{}{x.__class__}$(id)';drop table persons;--" * dice.randrange(50),
    lambda dice: "\ud800" * dice.randrange(3) + "\0" * dice.randrange(3),
    lambda dice: dice.choice((None, True, -1, 10**30, 1e308, [], {}, [[[[1]]]], {"id": {"id": []}})),
)


class Found(Value, frozen=True):
    """The outcome of a round."""

    cases: int
    wrong: list[str]


class Calls:
    """An agent that calls the tool that it is told to, and says that it did."""

    def __init__(self) -> None:
        self.call: ToolCall | None = None

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        """Call it, whatever comes of it."""
        call, self.call = self.call, None
        if call is not None:
            yield call
            yield await work.tools.call(call)
        yield Text(f"heard: {plain_text(work.asked[-1].parts)[:40]}")


class Door:
    """A gateway, somebody who means ill, and somebody who wants an answer."""

    def __init__(
        self, gateway: Gateway, agent: Calls, said: list[Delivery], changes: Changes, dice: random.Random
    ) -> None:
        self._gateway = gateway
        self._agent = agent
        self._said = said
        self._changes = changes
        self._dice = dice
        self._number = 0
        [(_, self._app)] = [hook for hook in gateway.webhooks() if "/http/" in hook[0]]

    async def case(self) -> list[str]:
        """One case; returns what is wrong with it."""
        self._number += 1
        kind = self._dice.choice((self._command, self._tool, self._post))
        before, told = time.process_time(), len(self._said)
        try:
            name = await kind()
        except Exception as error:  # noqa: BLE001 -- that is what is looked for
            return [f"{kind.__name__}: {error!r} was raised"]
        wrong = []
        if (took := time.process_time() - before) > SLOWEST:
            wrong.append(f"{name}: it took {took:.1f} s")
        long = [d for d in self._said[told:] if not d.session and len(d.text) > LONGEST]
        wrong += [f"{name}: its answer has {len(delivery.text):,} characters" for delivery in long]
        dead = await self._gateway.store.driver.read(letters.newest, 5)
        unforeseen = [letter.why for letter in dead if not letter.why.startswith(("Invalid", "UnicodeEncodeError"))]
        return [*wrong, *(f"{name}: {why}" for why in unforeseen)]

    async def others(self) -> None:
        """Somebody else is answered."""
        self._number += 1
        text = f"heard: and I {self._number}?"
        await self._accept("kind", f"and I {self._number}?")
        await self._changes.until(
            lambda: True if any(text in delivery.text for delivery in self._said) else None,
            lambda: "somebody else was never answered",
        )
        self._said.clear()

    async def _accept(self, who: str, text: str, name: str = "") -> None:
        place = Place(Address("whatsapp", "main", chat=who), Kind.DM, name)
        speaker = Speaker(Identity("whatsapp", "main", who), name)
        await self._gateway.accept(Arrival(place, f"m{self._number}", speaker, (Text(text),), 0.0))

    def _mean(self) -> Any:
        return self._dice.choice(MEAN)(self._dice)

    async def _command(self) -> str:
        spec = self._dice.choice(SPECS)
        await self._accept("mean", f"/{spec.name} {self._mean()}", hostile(self._dice, 8))
        return f"/{spec.name}"

    async def _tool(self) -> str:
        name = self._dice.choice(_TOOLS)
        chosen = {field: self._mean() for field in self._dice.sample(_FIELDS, self._dice.randrange(5))}
        self._agent.call = ToolCall(f"c{self._number}", name, chosen)
        told = len(self._said)
        await self._accept("mean", f"call {self._number}")
        await self._changes.until(
            lambda: True if any(d.session for d in self._said[told:]) else None,
            lambda: f"a turn that called {name} with {str(chosen)[:200]} was never answered",
        )
        return name

    async def _post(self) -> str:
        said: dict[str, Any] = {
            "id": f"h{self._number}",
            "chat": "c",
            "chat_kind": "dm",
            "person": {"id": "p"},
            "text": "x",
        }
        fields = self._dice.sample(_POSTED, self._dice.randrange(1, 4))
        body = json.dumps(said | {field: self._mean() for field in fields}).encode(errors="surrogatepass")
        answer = await post(self._app, "/in/http/alpha", body, signed(SECRET, body, time.time()))
        if answer.status >= 500:
            raise RuntimeError(f"{fields} were answered {answer.status}")
        return f"http {' '.join(fields)}"


async def run(where: str, cases: int, seed: int, bug: Bug = Bug.NONE) -> Found:
    """So many cases against one gateway."""
    adapter, http, agent = WhatsApp().adapter(), Http("alpha", Secret(SECRET), "http://127.0.0.1:9/", Shelf()), Calls()
    said, changes, wrong = list[Delivery](), Changes(), list[str]()

    async def send(delivery: Delivery) -> str:
        said.append(delivery)
        changes.tell()
        return delivery.key

    adapter.send = http.send = send  # type: ignore[method-assign]
    account = AccountSettings(public=True, streams=Streams.WHOLE)
    accounts = {("whatsapp", "main"): account, ("http", "alpha"): account}
    settings = GatewaySettings(accounts=accounts, limits=UNBOUNDED, poll=0.05, grace=0.0)
    with planted(*bug.patches):
        async with await open_store(where) as store, Gateway(store, agent, [adapter, http], settings) as gateway:
            door = Door(gateway, agent, said, changes, random.Random(seed))
            for number in range(cases):
                wrong += await door.case()
                if number % 25 == 0:
                    await door.others()
                if wrong:
                    break
            await door.others()
    await http.close()
    return Found(cases, [f"{line} (seed {seed})" for line in wrong])
