"""One platform in memory, a person on it, and gateways on one database: for tests of what agents ask for."""

import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from copy import copy
from typing import Any
from uuid import uuid4

from pydantic_ai import Agent as Pydantic
from pydantic_ai.messages import ModelMessage, SystemPromptPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from segue.agents.functions import FunctionAgent
from segue.agents.given import as_agent
from segue.core.contracts.agents import Agent, Tools, Work
from segue.core.lanes import Kind, Person
from segue.core.messages import Text, ToolCall, ToolResult
from segue.core.people import UNBOUNDED
from segue.core.prompt.envelopes import read
from segue.core.settings import AccountSettings, GatewaySettings, Streams
from segue.core.transcripts import Author, Draft, Role
from segue.core.values import SessionId
from segue.store import Store
from segue.testing.agents import ScriptedAgent, Step, Uses
from segue.testing.chats import Chat, Someone
from segue.testing.personas import Persona, WhatsApp
from tests.in_process import DEFAULT, gateway_on

Script = Callable[[Work], Iterable[Step]]


class Chatting:
    """A person who talks in one chat."""

    def __init__(self, where: str, persona: type[Persona] = WhatsApp, kind: Kind = Kind.DM) -> None:
        self.where = where
        self.kind = kind
        self.platform: Persona = persona()
        self.adapter = self.platform.adapter()
        self._settle()

    def _settle(self) -> None:
        self.ann = self.platform.person("Ann")
        self.chat: Chat = self.platform.dm(self.ann) if self.kind is Kind.DM else self.platform.group()

    def beside(self) -> "Chatting":
        """Another person who talks in another chat on the same platform."""
        other = copy(self)
        other._settle()
        return other

    @asynccontextmanager
    async def running(self, agent: Agent, settings: GatewaySettings = DEFAULT) -> AsyncIterator[Store]:
        """A gateway that runs until the block ends."""
        account = AccountSettings(public=True, streams=Streams.WHOLE)
        more: Any = {"account": account, "settings": settings, "limits": UNBOUNDED}
        async with (
            gateway_on(self.where, agent, self.adapter, **more) as gateway,
            self.platform.reaching(gateway.webhooks()),
        ):
            yield gateway.store

    def says(self, text: str) -> None:
        """The person says something."""
        self.ann.says(text, self.chat)

    async def person(self, store: Store, someone: Someone | None = None) -> Person:
        """Who somebody is to the gateway."""
        return await store.person((someone or self.ann).identity)

    async def session(self, store: Store) -> SessionId:
        """The session that the chat speaks to."""
        session = await store.bound(await store.lane(self.chat.place, await self.person(store)))
        assert session is not None
        return session.id


def uses(name: str, id: str = "call", **arguments: Any) -> Uses:
    """A call of one of the gateway's tools."""
    return Uses(id, name, arguments=arguments)


async def results(store: Store, session: SessionId) -> list[ToolResult]:
    """What the tools that a session called came back with, in order."""
    return [part for entry in await store.path(session) for part in entry.parts if isinstance(part, ToolResult)]


def by_script(script: Script) -> Agent:
    """An agent that does what the script says, and tells the gateway of every call."""
    return ScriptedAgent(otherwise=script)


def by_function(script: Script) -> Agent:
    """A Python function that does the same, tells nobody, and never looks at what an earlier attempt did."""

    async def reply(work: Work, tools: Tools) -> AsyncIterator[str]:
        for n, step in enumerate(script(work)):
            if isinstance(step, Uses):
                await tools.call(ToolCall(f"{work.session} {n}", step.name, step.arguments))
            elif isinstance(step, str):
                yield step
            elif isinstance(step, Exception):
                raise step

    return FunctionAgent(reply)


def by_model(script: Script) -> Agent:
    """An agent of pydantic-ai whose model does the same, one request a step, and gives every call a new id."""

    async def stream(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        asked, done = "", 0
        for message in messages:
            for part in message.parts:
                if isinstance(part, UserPromptPart | SystemPromptPart):
                    asked, done = str(part.content), 0
                done += isinstance(part, ToolReturnPart)
        # Where several people may speak, words come with their author.
        words = read(asked).text if asked.startswith("{") else asked
        draft = Draft(Author(Role.PERSON), (Text(words),))
        step = list(script(Work(SessionId(""), 1, "", (), (draft,))))[done]
        if isinstance(step, Uses):
            yield {0: DeltaToolCall(step.name, json.dumps(step.arguments), tool_call_id=uuid4().hex)}
        else:
            yield str(step)

    return as_agent(Pydantic(FunctionModel(stream_function=stream)))
