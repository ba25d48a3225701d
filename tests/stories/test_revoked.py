"""Whoever may talk no more has nothing running, waiting or acting for them."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import apsw

from segue.changes.people import grants
from segue.changes.people.grants import Scope
from segue.core.contracts.agents import Event, Work
from segue.core.lanes import account_key
from segue.core.messages import Text, ToolCall
from segue.core.settings import AccountSettings
from segue.errors import Refusal
from segue.testing import Telegram
from segue.testing.agents import said
from tests.in_process import gateway_on


class Slow:
    """An agent that goes on when it is told to, and then calls a tool."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[str] = asyncio.Queue()
        self.go_on = asyncio.Event()
        self.results: list[object] = []

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        self.asked.put_nowait(said(work))
        await self.go_on.wait()
        done = await work.tools.call(ToolCall("1", "sessions_list", {}))
        self.results.append(done.content if done.failed else "done")
        yield Text(f"answered {said(work)}")


async def test_tools_do_nothing_for_a_person_who_was_let_out(tmp_path: Path) -> None:
    agent, telegram = Slow(), Telegram()
    ann = telegram.person("Ann")
    chat = telegram.dm(ann)
    async with gateway_on(tmp_path, agent, telegram, account=AccountSettings()) as gateway:
        store = gateway.store
        person = (await store.person(ann.identity, "Ann")).id
        account = account_key(ann.identity.platform, ann.identity.account)
        await store.driver.write(grants.grant, account, person, Scope.DM, "test", person, time.time())
        ann.says("one", chat)
        await agent.asked.get()
        # No more than the grant ends: the turn runs on.
        await store.driver.write(grants.revoke, account, person, Scope.DM, person, time.time())
        agent.go_on.set()
        await chat.reads("answered one")
    assert agent.results == [Refusal.NOT_ALLOWED.value]


async def test_a_gateway_that_lets_somebody_in_no_more_answers_nothing_of_theirs(tmp_path: Path) -> None:
    agent, telegram = Slow(), Telegram()
    ann, bob = telegram.person("Ann"), telegram.person("Bob")
    chat, bobs = telegram.dm(ann), telegram.dm(bob)
    both = AccountSettings(allow=frozenset({ann.identity.user, bob.identity.user}))
    async with gateway_on(tmp_path, agent, telegram, account=both):
        ann.says("one", chat)
        assert await agent.asked.get() == "one"
        await telegram.settles()
        ann.says("two", chat)
        await telegram.settles()
    agent.go_on.set()
    async with gateway_on(tmp_path, agent, telegram, account=AccountSettings(allow=frozenset({bob.identity.user}))):
        bob.says("three", bobs)
        await bobs.reads("answered three")
    assert [agent.asked.get_nowait() for _ in range(agent.asked.qsize())] == ["three"]


async def test_a_turn_stops_though_the_hint_that_says_so_is_lost(tmp_path: Path) -> None:
    agent, telegram = Slow(), Telegram()
    ann = telegram.person("Ann")
    chat = telegram.dm(ann)
    async with gateway_on(tmp_path, agent, telegram) as gateway:
        ann.says("one", chat)
        assert await agent.asked.get() == "one"
        # Nobody is told of what is committed like this.
        with closing(apsw.Connection(str(tmp_path / "segue.db"))) as other:
            other.execute("update turns set stopped_by = person where outcome is null")
        await gateway._stranded.look()
        await chat.reads("(Stopped.)")
