"""A square: people of one platform, whichever it is, a gateway, and an agent that says again what it was told."""

import json
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse

from segue import Session, Store
from segue.adapters.http import Http
from segue.agents.given import as_agent
from segue.core.contracts.agents import Agent, Work
from segue.core.contracts.database import Clock
from segue.core.lanes import Address, Identity, Lane
from segue.core.messages import PLACEHOLDER, plain_text
from segue.core.people import UNBOUNDED, Allowances
from segue.core.settings import AccountSettings, Deletions, GatewaySettings, Mentions, Streams
from segue.core.text.notices import ELSEWHERE
from segue.core.transcripts import Role
from segue.core.values import Secret
from segue.runtime.gateway import Gateway
from segue.runtime.server.app import Mounted
from segue.runtime.server.listeners import Listener, serving
from segue.testing import PERSONAS, HandClock, Platform, ScriptedAgent, Shelf, Slack, To
from segue.testing.agents import Step
from segue.testing.asgi import Application, post
from segue.testing.chats import Chat, Someone
from segue.testing.ledger import Message
from segue.testing.wire import decode
from tests.adapters.platform import signed
from tests.in_process import DEFAULT, gateway_on

SECRET = "the secret of the square"


class BehindHttp(Platform):
    """A platform of one's own, behind the HTTP adapter."""

    name = "http"
    keys_last = float("inf")
    callback = ""

    def __init__(self) -> None:
        super().__init__()
        self.deleted: list[str] = []
        self.busy = 0
        """Deletions that it refuses for now."""

    def adapter(self) -> Http:
        """The adapter that ships."""
        return Http(self.account, Secret(SECRET), self.callback, self.shelf)

    async def take(self, scope: Any, receive: Any, send: Any) -> None:
        """Take what the gateway sends."""
        call = json.loads(await Request(scope, receive).body())
        if call["kind"] == "delete" and self.busy:
            self.busy -= 1
            await JSONResponse({}, status_code=503)(scope, receive, send)
            return
        if call["kind"] == "delete":
            self.deleted.append(call["message"])
            await JSONResponse({})(scope, receive, send)
            return
        message = self.sends(Address(**call["address"]), _shown(call), call["key"], call["only"])
        await JSONResponse({"id": message.id})(scope, receive, send)

    async def _deliver(self, app: Application, path: str) -> None:
        async for parcel in self.feed.parcels():
            update = decode(parcel.body)
            if not update.by.agent:
                person = {"id": update.by.id, "name": update.by.name}
                said = {"id": update.message, "person": person, "text": update.text, "mentions_agent": update.mentions}
                place = {"chat": update.chat, "chat_kind": update.kind, "chat_name": update.chat_name}
                quotes = {"quotes": update.quotes} if update.quotes else {}
                sent = [{"name": f.name, "data": b64encode(self.files[f.id]).decode()} for f in update.files]
                body = json.dumps(said | place | quotes | {"files": sent}).encode()
                assert (await post(app, path, body, signed(SECRET, body, time.time()))).status == 202
            self.feed.acknowledge(parcel)


def _shown(call: dict[str, Any]) -> str:
    return "\n".join(filter(None, [call["text"], f"[{call['file']['name']}]" if call["file"] else ""]))


PLATFORMS: tuple[type[Platform], ...] = (*PERSONAS, BehindHttp)
DATABASES = ("sqlite", "postgres")
_SHAPES = {"WhatsApp", "Feishu", "Discord"}
"""A flat platform, one whose threads grow from a message, one whose threads stand by themselves."""
_EVERYWHERE = [
    pytest.param(
        (platform, DATABASES[n % 2]),
        id=f"{platform.__name__}-{DATABASES[n % 2]}",
        marks=() if platform.__name__ in _SHAPES else pytest.mark.full,
    )
    for n, platform in enumerate(PLATFORMS)
]
everywhere = pytest.mark.parametrize("square", _EVERYWHERE, indirect=True)
"""On every platform, each with one of the two databases; `make test` takes one of each shape of threads."""
_HTTP = pytest.param((BehindHttp, "postgres"), id="BehindHttp-postgres")
quoting = pytest.mark.parametrize(
    "square", [*[p for p in _EVERYWHERE if p.id not in {"Slack-sqlite", _HTTP.id}], _HTTP], indirect=True
)
"""Wherever a reply stays in its chat: on Slack it is a thread, which is a place of its own."""
both = pytest.mark.parametrize(
    "square", [pytest.param((PERSONAS[0], name), id=name) for name in DATABASES], indirect=True
)
"""On a flat platform, with either database."""


def recalls(work: Work) -> Iterable[Step]:
    """Say again what was said, after how much that one knows."""
    return ["You said: " + " + ".join(plain_text(draft.parts) for draft in work.asked)]


async def _remembers(work: Work) -> str:
    """All that people said in the session."""
    said = [plain_text(entry.parts) for entry in work.transcript if entry.author.role is Role.PERSON]
    return " | ".join([*said, *(plain_text(draft.parts) for draft in work.asked)])


REMEMBERS = as_agent(_remembers)


class Square:
    """Ann, who is the host, and whoever else comes, on one platform."""

    def __init__(self, platform: Platform, where: str) -> None:
        self.platform = platform
        self.where = where
        self.ann = platform.person("Ann")
        self.dm = platform.dm(self.ann)
        self.clock: Clock = HandClock(time.time())
        self.agent: Agent = ScriptedAgent(otherwise=recalls)
        self.agents: dict[str, Agent] = {}
        """Several, if there are; the first is the default."""
        self.files = Shelf()
        self.deletions = Deletions.HIDE
        self.public = True
        self.approvers: tuple[str, ...] = ()
        """Who answers what agents ask, if it isn't whoever they talk with."""
        self.store: Store
        self.changed: set[str] = set()
        """Tables in which this story changes rows of the bystanders on purpose."""

    @asynccontextmanager
    async def open(
        self, settings: GatewaySettings = DEFAULT, mentions: Mentions = Mentions.OPTIONAL
    ) -> AsyncIterator[Gateway]:
        """The gateway runs while inside."""
        platform = self.platform
        more: dict[str, Any] = {"limits": UNBOUNDED} if settings.limits == Allowances() else {}
        account = AccountSettings(
            public=self.public,
            streams=Streams.WHOLE,
            mentions=mentions,
            deletions=self.deletions,
            approvers=self.approvers,
        )
        more |= {"account": account, "clock": self.clock, "files": self.files}
        more |= {"settings": settings, "hosts": (self.ann.identity, *settings.hosts)}
        async with AsyncExitStack() as stack:
            if isinstance(platform, BehindHttp):
                listener = Listener("127.0.0.1", 0)
                platform.callback = f"{listener.url}/out"
                _ = await stack.enter_async_context(serving(Mounted(platform.take), listener))
            adapter = platform.adapter()  # type: ignore[attr-defined]  # every persona has one
            if isinstance(adapter, Http):
                stack.push_async_callback(adapter.close)
            running = gateway_on(self.where, self.agents or self.agent, adapter, **more)
            gateway = await stack.enter_async_context(running)
            self.store = gateway.store
            await stack.enter_async_context(platform.reaching(gateway.webhooks()))
            yield gateway

    def passes(self, seconds: float) -> None:
        """Time passes."""
        assert isinstance(self.clock, HandClock)
        self.clock.passes(seconds)

    async def says(
        self,
        text: str,
        quoting: Message | None = None,
        who: Someone | None = None,
        where: Chat | None = None,
        answers: int = 1,
    ) -> str:
        """Somebody says something; returns the last of so many things that the agent says then."""
        chat = where or self.dm
        before = len(chat.replies)
        self.passes(1.0)
        (who or self.ann).says(text, chat, quoting, To.AGENT)
        return (await self.hears(chat, before + answers))[-1]

    async def alone(self, text: str, where: Chat) -> str:
        """Ann asks among others for what only she is to see; returns that, wherever she is shown it."""
        shown = self.shown_alone(where)
        if shown is where:
            return await self.says(text, where=where)
        before = len(shown.replies)
        assert await self.says(text, where=where) == ELSEWHERE
        return (await self.hears(shown, before + 1))[-1]

    def shown_alone(self, where: Chat) -> Chat:
        """Where Ann is shown what nobody else is to see: there, if the platform can, else in her private chat."""
        return where if isinstance(self.platform, Slack | BehindHttp) else self.dm

    async def hears(self, chat: Chat, count: int) -> list[str]:
        """Wait until the agent has said so many things in a chat."""

        def heard() -> list[str] | None:
            replies = [reply for reply in chat.replies if reply != PLACEHOLDER]
            return replies if len(replies) >= count else None

        return await self.platform.changes.until(heard, lambda: f"never heard {count} replies: {chat.replies!r}")

    def message(self, text: str, where: Chat | None = None) -> Message:
        """The newest message with a text that stands in a chat."""
        return next(m for m in reversed((where or self.dm).messages) if m.text == text)

    async def session(self, where: Chat | None = None, who: Identity | None = None) -> Session:
        """What a chat speaks to, or somebody's share of it."""
        address = (where or self.dm).address
        person = (await self.store.person(who)).id if who else ""
        found = await self.store.bound(Lane(address, person))
        assert found is not None
        return found

    async def texts(self, session: Session | None = None) -> list[str]:
        """What was said in a session, by its path; what only the agent is told is left out."""
        path = await self.store.path((session or await self.session()).id)
        return [entry.text for entry in path if entry.text]

    async def count(self) -> int:
        """How many entries there are in all sessions of Ann's."""
        ann = await self.store.person(self.ann.identity)
        total = 0
        for session in await self.store.sessions(ann, 100):
            total += len([entry async for entry in self.store.entries(session.id)])
        return total

    @property
    def works(self) -> Sequence[Work]:
        """All that the agent was given."""
        assert isinstance(self.agent, ScriptedAgent)
        return self.agent.works
