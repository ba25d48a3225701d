"""Children and ending turns have the account, agent, tools and approvers of the turn that started them."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from segue.core.contracts.agents import Agent, Event, Work
from segue.core.messages import Aside
from segue.core.resets import Policies, Policy, When
from segue.core.settings import AccountSettings, Settings, Streams
from segue.errors import Refusal, Refused
from segue.testing import HandClock, Telegram, To
from segue.testing.agents import ScriptedAgent, Step, Uses, said
from segue.testing.chats import Chat
from tests.in_process import gateway_on

TOOLS = ("sessions_spawn",)


class Weak(ScriptedAgent):
    """An agent that has each child start another; it asks where it is told to."""

    def __init__(self, mode: str = "run") -> None:
        super().__init__(otherwise=self._does)
        self._mode = mode

    def _does(self, work: Work) -> Iterable[Step]:
        told = said(work)
        if not told.startswith("go "):
            return ["done"]
        deeper = {"task": told[3:], "mode": self._mode, "label": "helper"}
        return [Uses(told, "sessions_spawn", arguments=deeper), "started"]

    async def answer(self, work: Work) -> AsyncIterator[Event]:
        asides = [part.text for draft in work.asked for part in draft.parts if isinstance(part, Aside)]
        if "inquire" in (said(work), *asides):
            assert work.ask is not None
            await work.ask("May I?", ("yes", "no"))
        async for event in super().answer(work):
            yield event


class Town:
    """A host who approves, and a stranger on a public account whose agent isn't the strongest."""

    def __init__(self, mode: str = "run") -> None:
        self.telegram = Telegram()
        self.ann, self.bob = self.telegram.person("Ann"), self.telegram.person("Bob")
        self.hosts, self.strangers = self.telegram.dm(self.ann), self.telegram.dm(self.bob)
        self.strong, self.weak = ScriptedAgent(otherwise=lambda _: ["strong"]), Weak(mode)
        self.agents: dict[str, Agent] = {"strong": self.strong, "weak": self.weak}
        self.account = AccountSettings(
            public=True, streams=Streams.WHOLE, agent="weak", tools=TOOLS, approvers=(self.ann.identity.name,)
        )

    async def hears(self, chat: Chat, text: str) -> None:
        await self.telegram.changes.until(
            lambda: True if any(text in reply for reply in chat.replies) else None, lambda: f"{chat.replies}"
        )

    async def asks_the_host_alone(self) -> None:
        """The question comes before the host, and the stranger's yes is none."""
        await self.hears(self.hosts, "May I?")
        self.bob.says("/yes", self.strangers, None, To.AGENT)
        await self.hears(self.strangers, "was asked of")
        asked = next(message for message in self.hosts.messages if message.text.startswith("May I?"))
        self.ann.says("yes", self.hosts, asked, To.AGENT)
        await self.hears(self.hosts, "Answered: yes (Ann).")

    def was_weak(self) -> None:
        assert self.strong.works == []
        assert {tool.name for work in self.weak.works for tool in work.tools.offered} == set(TOOLS)


@pytest.mark.parametrize("mode", ["run", "session"])
async def test_children_inherit_at_every_depth(tmp_path: Path, mode: str) -> None:
    town = Town(mode)
    async with gateway_on(tmp_path, town.agents, town.telegram, account=town.account, hosts=(town.ann.identity,)):
        town.ann.says("hello", town.hosts, None, To.AGENT)
        await town.hears(town.hosts, "done")
        town.bob.says("go go inquire", town.strangers, None, To.AGENT)
        await town.asks_the_host_alone()
        await town.weak.asked(4)
        town.was_weak()


async def test_a_child_has_the_agent_that_its_parent_was_swapped_to(tmp_path: Path) -> None:
    town = Town()
    other = Weak()
    agents = {"default": ScriptedAgent(otherwise=lambda _: ["default"]), "other": other}
    async with gateway_on(tmp_path, agents, town.telegram, hosts=(town.ann.identity,)):
        town.ann.says("hello", town.hosts, None, To.AGENT)
        await town.hears(town.hosts, "default")
        town.ann.says("/agent other", town.hosts, None, To.AGENT)
        town.ann.says("go go task", town.hosts, None, To.AGENT)
        await other.asked(3)
        assert [said(work) for work in other.works][:3] == ["go go task", "go task", "task"]


async def test_the_ending_of_a_session_inherits(tmp_path: Path) -> None:
    town, clock = Town(), HandClock(1_800_000_000.0)
    settings = Settings(resets=Policies(Policy(When.IDLE, 60.0)))
    more: dict[str, Any] = {"account": town.account, "hosts": (town.ann.identity,), "routing": settings, "clock": clock}
    async with gateway_on(tmp_path, town.agents, town.telegram, ending="inquire", **more) as gateway:
        town.ann.says("hello", town.hosts, None, To.AGENT)
        await town.hears(town.hosts, "done")
        town.bob.says("hello", town.strangers, None, To.AGENT)
        await town.hears(town.strangers, "done")
        clock.passes(4000.0)
        await gateway._sweep.once()
        await town.asks_the_host_alone()
        town.was_weak()


async def test_an_account_may_withhold_the_default_agent(tmp_path: Path) -> None:
    town = Town()
    account = replace(town.account, agents=("weak",))
    agents: dict[str, Agent] = {"": town.strong, "weak": town.weak}
    async with gateway_on(tmp_path, agents, town.telegram, account=account, hosts=(town.ann.identity,)):
        town.bob.says("hello", town.strangers, None, To.AGENT)
        await town.hears(town.strangers, "done")
        town.bob.says("/agent default", town.strangers, None, To.AGENT)
        await town.hears(town.strangers, str(Refused(Refusal.NO_AGENT)))
        town.ann.says("hello", town.hosts, None, To.AGENT)
        await town.hears(town.hosts, "done")
        town.ann.says("/agent default", town.hosts, None, To.AGENT)
        await town.hears(town.hosts, "default answers from here on.")
        assert town.strong.works == []
