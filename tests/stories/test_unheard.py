"""A commit of which nobody hears: the answer is sent all the same, once, and the session goes on."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from segue.changes.exchange import turns
from segue.core.contracts.database import Driver, Transaction
from segue.errors import OutcomeUnknown
from segue.store import open_driver
from segue.testing import Telegram
from tests.in_process import gateway_on

P = ParamSpec("P")
T = TypeVar("T")


class Unheard:
    """A database that takes the first end of a turn, and never says so."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.read, self.hint, self.listen, self.close = driver.read, driver.hint, driver.listen, driver.close
        self.copies, self.scrub, self.damage = driver.copies, driver.scrub, driver.damage
        self.taken = 0

    async def write(self, transaction: Callable[P, Transaction[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        done = await self._driver.write(transaction, *args, **kwargs)
        if transaction is turns.finish:
            self.taken += 1
            if self.taken == 1:
                raise OutcomeUnknown("The connection broke during the commit.")
        return done


async def test_an_answer_whose_commit_nobody_heard_of_is_sent_once_and_the_session_goes_on(database: str) -> None:
    go_on = asyncio.Event()

    async def reply(text: str) -> str:
        await go_on.wait()
        return f"heard {text}"

    platform = Telegram()
    ann = platform.person("Ann")
    chat = platform.dm(ann)
    driver = Unheard(await open_driver(database))
    async with gateway_on(driver, reply, platform, lease=60.0, poll=0.1):
        ann.says("one", chat)
        ann.says("two", chat)
        go_on.set()
        await chat.reads("heard one")
        await chat.reads("heard two")
        ann.says("three", chat)
        await chat.reads("heard three")
        assert [text for text in chat.replies if text.startswith("heard")] == ["heard one", "heard two", "heard three"]
    assert driver.taken > 1
