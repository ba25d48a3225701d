"""A commit of which nobody hears: whatever it decided goes on, once, without a restart."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import pytest

from segue.agents.given import as_agent
from segue.core.contracts.agents import Work
from segue.core.contracts.database import Driver, Transaction
from segue.core.messages import Arrival, Speaker, Text, plain_text
from segue.errors import OutcomeUnknown
from segue.store import open_driver
from segue.testing import Telegram
from tests.in_process import gateway_on

P = ParamSpec("P")
T = TypeVar("T")


class Unheard:
    """A database that takes the first transaction of a name, and never says so."""

    def __init__(self, driver: Driver, name: str) -> None:
        self._driver = driver
        self.read, self.hint, self.listen, self.close = driver.read, driver.hint, driver.listen, driver.close
        self.copies, self.scrub, self.damage = driver.copies, driver.scrub, driver.damage
        self._name = name
        self.lost = False

    async def write(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        done = await self._driver.write(transaction, *args, **kwargs)
        if not self.lost and done and f"{transaction.__module__}.{transaction.__qualname__}".endswith(self._name):
            self.lost = True
            raise OutcomeUnknown("The connection broke during the commit.")
        return done


async def answers(work: Work) -> str:
    """Say again what was said, or what was asked about it."""
    said = plain_text(work.asked[0].parts)
    return f"heard {await work.ask('What?', ('this', 'that')) if said == 'ask me' else said}"


COMMITS = ["FrontDoor.accept", "turns.claim", "deliveries.outgoing", "turns.finish", "questions.finish", "Asks.ask"]


@pytest.mark.parametrize("name", COMMITS)
async def test_what_a_commit_decided_goes_on_though_nobody_heard_of_it(database: str, name: str) -> None:
    platform = Telegram()
    ann, bob = platform.person("Ann"), platform.person("Bob")
    chat, other = platform.dm(ann), platform.dm(bob)
    driver = Unheard(await open_driver(database), name)
    async with gateway_on(driver, as_agent(answers), platform, lease=60.0, poll=0.1, slots=1):
        ann.says("one", chat)
        # One of the two waits for the only slot, and is claimed.
        bob.says("two", other)
        await chat.reads("heard one")
        await other.reads("heard two")
        ann.says("/title Cats", chat)
        await chat.reads_some(2)
        ann.says("ask me", chat)
        await chat.reads_some(3)
        # It waits behind the question, and is taken with its end.
        ann.says("three", chat)
        ann.says("this", chat)
        await chat.reads("heard this")
        await chat.reads("heard three")
        assert [text for text in chat.replies if text.startswith("heard")] == ["heard one", "heard this", "heard three"]
        assert other.replies == ["heard two"]
    assert driver.lost


async def test_a_message_whose_bringer_hung_up_is_answered(database: str) -> None:
    """A platform's line breaks at the very moment at which the message, and the claim on its session, are committed."""
    platform = Telegram()
    ann = platform.person("Ann")
    chat = platform.dm(ann)
    begun, go_on = asyncio.Event(), asyncio.Event()

    class Slow(Unheard):
        async def write(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
            done = await self._driver.write(transaction, *args, **kwargs)
            if transaction.__qualname__ == "FrontDoor.accept":
                begun.set()
                await go_on.wait()
            return done

    async with gateway_on(Slow(await open_driver(database), "-"), as_agent(answers), platform, lease=60.0) as gateway:
        arrival = Arrival(chat.place, "m1", Speaker(ann.identity), (Text("one"),), 0.0)
        bringing = asyncio.create_task(gateway.accept(arrival))
        await begun.wait()
        bringing.cancel()
        await asyncio.wait([bringing])
        go_on.set()
        await chat.reads("heard one")
