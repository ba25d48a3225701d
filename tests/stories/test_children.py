"""Sessions that agents start themselves: on every platform, with a thread or without, for one task or to last."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from segue import open_store
from segue.agents.functions import FunctionAgent
from segue.core.contracts import Agent, OpensThreads, Tools, Work
from segue.core.lanes import Kind, Person
from segue.core.messages import ToolCall, ToolResult
from segue.core.moves import Limits
from segue.core.values import SessionId
from segue.runtime.gateway import Gateway
from segue.runtime.settings import AccountSettings, GatewaySettings, Streams
from segue.store.arrivals import Settings
from segue.store.store import Store
from segue.testing.agents import Pause, ScriptedAgent, Step, Uses, said
from segue.testing.chats import Chat, Someone
from segue.testing.personas import PERSONAS, Discord, Persona, Slack, Telegram, WhatsApp


class Stage:
    """One platform, one person on it, and gateways on one database."""

    def __init__(self, where: str, persona: type[Persona], kind: Kind = Kind.DM) -> None:
        self.where = where
        self.platform = persona()
        self.ann = self.platform.person("Ann")
        self.chat: Chat = self.platform.dm(self.ann) if kind is Kind.DM else self.platform.group()
        self.adapter = self.platform.adapter()

    @asynccontextmanager
    async def running(self, agent: Agent, **more: Any) -> AsyncIterator[Store]:
        """A gateway that runs until the block ends."""
        account = AccountSettings(public=True, streams=Streams.WHOLE)
        accounts = {(self.platform.name, self.platform.account): account}
        settings = GatewaySettings(**({"accounts": accounts, "poll": 0.05, "grace": 0.0} | more))
        async with (
            await open_store(self.where) as store,
            Gateway(store, agent, [self.adapter], settings) as gateway,
            self.platform.reaching(gateway.webhooks()),
        ):
            yield store

    async def person(self, store: Store, someone: Someone | None = None) -> Person:
        """Who somebody is to the gateway."""
        return await store.person((someone or self.ann).identity)

    def says(self, text: str) -> None:
        """The person says something."""
        self.ann.says(text, self.chat)


def uses(name: str, id: str = "call", **arguments: Any) -> Uses:
    """A tool of the gateway."""
    return Uses(id, name, arguments=arguments)


async def called(store: Store, session: SessionId) -> list[ToolResult]:
    """The results of the tools that a session called, in order."""
    return [part for entry in await store.path(session) for part in entry.parts if isinstance(part, ToolResult)]


Script = Callable[[Work], Iterable[Step]]


def by_script(script: Script) -> Agent:
    """An agent that does what the script says, and tells the gateway of every call."""
    return ScriptedAgent(otherwise=script)


def by_function(script: Script) -> Agent:
    """A Python function that does the same, and never looks at what an earlier attempt did."""

    async def reply(work: Work, tools: Tools) -> AsyncIterator[str]:
        for n, step in enumerate(script(work)):
            if isinstance(step, Uses):
                await tools.call(ToolCall(f"{n}", step.name, step.arguments))
            elif isinstance(step, str):
                yield step

    return FunctionAgent(reply)


PLACES = [*((persona, Kind.DM) for persona in PERSONAS), (Discord, Kind.GROUP), (Slack, Kind.GROUP)]


@pytest.mark.parametrize("agent", [by_script, by_function], ids=["script", "function"])
@pytest.mark.parametrize(("persona", "kind"), PLACES, ids=lambda what: getattr(what, "name", what))
@pytest.mark.parametrize("thread", [False, True, "required"], ids=str)
@pytest.mark.parametrize("mode", ["run", "session"])
async def test_every_way_to_start_a_session(
    database: str,
    mode: str,
    thread: bool | str,
    persona: type[Persona],
    kind: Kind,
    agent: Callable[[Script], Agent],
) -> None:
    stage = Stage(database, persona, kind)
    told: list[str] = []

    def script(work: Work) -> Iterable[Step]:
        told.append(said(work))
        match said(work):
            case "go":
                yield uses("sessions_spawn", task="the task", mode=mode, thread=thread, label="helper")
                yield "started"
            case "the task":
                yield "done"
            case "and you?":
                yield "fine"
            case "is it there?":
                yield uses("sessions_list")
                yield "looked"
            case words:
                yield f"heard: {words}"

    opens = isinstance(stage.adapter, OpensThreads) and (persona, kind) != (Discord, Kind.DM)
    refused = thread == "required" and (mode == "run" or not opens)
    async with stage.running(agent(script)) as store:
        stage.says("go")
        await stage.chat.reads("started")
        parent = await one(store, stage)
        found = [session for session in await store.branches(parent) if session.parent == parent]
        assert len(found) == (0 if refused else 1)
        if refused:
            assert told == ["go"]
            return
        child = found[0]
        assert child.label == "helper"
        assert child.owner == (await stage.person(store)).id
        if mode == "run":
            result = f"heard: From your child session “helper” ({child.id}):\n\ndone"
            await stage.chat.reads(result)
            assert stage.chat.replies.count(result) == 1
            assert (await store.session(child.id, await stage.person(store))).closed is not None
            assert [entry.text for entry in await store.path(child.id)] == ["the task", "done"]
        elif thread and opens:
            inside = await stage.chat.sees_thread()
            await inside.reads("done")
            stage.ann.says("and you?", inside)
            await inside.reads("fine")
            assert [entry.text for entry in await store.path(child.id)] == ["the task", "done", "and you?", "fine"]
        else:
            await stage.chat.reads("done")
            assert await store.child(parent, "helper") == child.id
            assert not await store.lanes_of(child.id)
        if mode == "run" or not opens:
            assert not stage.chat.threads


async def one(store: Store, stage: Stage) -> SessionId:
    """The session that the stage's chat speaks to."""
    person = await stage.person(store)
    lane = await store.lane(stage.chat.place, person)
    session = await store.bound(lane)
    assert session is not None
    return session.id
