"""Answers of the database get lost on their way now and then: every message is answered once, in order."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from typing import Any, ParamSpec, TypeVar

from segue.core.contracts.adapters import Accepted
from segue.core.contracts.agents import Event, Work
from segue.core.contracts.database import Driver, Transaction
from segue.core.lanes import Address, Identity, Kind, Place
from segue.core.messages import Arrival, Delivery, Speaker, Text, plain_text
from segue.core.people import UNBOUNDED
from segue.core.settings import AccountSettings, Streams
from segue.errors import OutcomeUnknown, StoreError
from segue.runtime.gateway import Gateway
from segue.runtime.outbox import MAYBE
from segue.store import open_driver
from segue.testing import WhatsApp
from tests.drills.planting import Bug, planted
from tests.in_process import gateway_on

P = ParamSpec("P")
T = TypeVar("T")
_EACH = 5
"""One of so many commits of each kind is never heard of."""


class Lossy:
    """A database whose answer to a write is lost now and then, after the commit."""

    def __init__(self, driver: Driver, seed: int) -> None:
        self._driver = driver
        self.read, self.hint, self.listen, self.close = driver.read, driver.hint, driver.listen, driver.close
        self.copies, self.scrub, self.damage = driver.copies, driver.scrub, driver.damage
        self._seed = seed
        self._counts = Counter[str]()
        self.loses = False
        """Whether answers are lost now."""
        self.lost = 0

    async def write(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a transaction; the beats of a replica are always heard, since a lost one isn't what is looked at."""
        done = await self._driver.write(transaction, *args, **kwargs)
        name = transaction.__qualname__
        self._counts[name] += self.loses
        if self.loses and self._counts[name] % _EACH == self._seed % _EACH and name not in {"beat", "join", "leave"}:
            self.lost += 1
            raise OutcomeUnknown("The connection broke during the commit.")
        return done


class Street:
    """People who say one thing after the other, without waiting for answers, and their platform."""

    def __init__(self) -> None:
        self.shown: dict[str, list[str]] = defaultdict(list)
        self.changed = asyncio.Event()

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        """Say again what was said."""
        yield Text(" + ".join(plain_text(draft.parts) for draft in work.asked))

    async def send(self, delivery: Delivery) -> str:
        """Take a message, as often as it comes."""
        self.shown[delivery.address.chat] += delivery.text.removeprefix(MAYBE).split(" + ")
        self.changed.set()
        return delivery.key


async def _say(gateway: Gateway, chat: str, text: str) -> None:
    """Bring a message until it is acknowledged, as a platform does."""
    place = Place(Address("whatsapp", "main", chat=chat), Kind.DM)
    arrival, taken = Arrival(place, text, Speaker(Identity("whatsapp", "main", chat)), (Text(text),), 0.0), None
    while taken is None:
        try:
            taken = await gateway.accept(arrival)
        except StoreError:
            await asyncio.sleep(0)
    assert taken in {Accepted.NEW, Accepted.DUPLICATE}


async def run(where: str, messages: int, seed: int, patience: float = 120.0, bug: Bug = Bug.NONE) -> list[str]:
    """Let four people say so many things each; returns what is wrong."""
    street = Street()
    adapter = WhatsApp().adapter()
    adapter.send = street.send  # type: ignore[method-assign]
    account = AccountSettings(public=True, streams=Streams.WHOLE)
    more: dict[str, Any] = {"limits": UNBOUNDED, "slots": 3, "lease": 60.0, "poll": 0.1, "overload": patience}
    chats = [f"p{n}" for n in range(4)]
    said = {chat: [f"{chat} says {n}" for n in range(messages)] for chat in chats}
    driver = Lossy(await open_driver(where), seed)

    async def talk(gateway: Gateway, chat: str) -> None:
        for text in said[chat]:
            await _say(gateway, chat, text)
        while len(street.shown[chat]) < messages:
            street.changed.clear()
            await street.changed.wait()

    with planted(*bug.patches):
        async with gateway_on(driver, street, adapter, account=account, **more) as gateway:
            driver.loses = True
            try:
                async with asyncio.timeout(patience):
                    await asyncio.gather(*(talk(gateway, chat) for chat in chats))
            except TimeoutError:
                return [f"{chat} waits after {len(street.shown[chat])} of {messages}" for chat in chats]
    wrong = [f"{chat}: {street.shown[chat]}" for chat in chats if street.shown[chat] != said[chat]]
    return wrong if driver.lost else [*wrong, "no answer was lost"]
