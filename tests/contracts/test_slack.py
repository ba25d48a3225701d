"""The Slack adapter keeps the contracts, with local-slack behind it: by its socket, and called with signed events."""

import itertools
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from segue.adapters.shared.rates import Bucket, Rate
from segue.adapters.slack import Slack, SlackByEvents
from segue.adapters.slack.adapter import signature
from segue.adapters.slack.api import Api
from segue.adapters.slack.outgoing import Pace
from segue.core.contracts.adapters import Accept, Adapter, TakesWebhooks
from segue.core.lanes import Address, Kind
from segue.core.values import Secret
from segue.runtime.server.app import Mounted
from segue.runtime.server.listeners import Listener, serving
from segue.testing import Shelf
from segue.testing.asgi import Application, post
from segue.testing.contracts import (
    ChangeContract,
    DeletionContract,
    RenameContract,
    StepContract,
    TypingContract,
    WebhookContract,
    WhisperContract,
)
from segue.testing.harness import Bookmark, Given, Seen, living
from tests.servers.slack import APP_TOKEN, PEOPLE, SIGNING, TOKEN, Between, slack

BRISK = Pace(Rate(1000, 0.001), Bucket(1000, 0.001), Bucket(1000, 0.001))
"""local-slack allows everything; what Slack allows is tested with a clock in the hand."""


class SlackHarness:
    """Lets the contracts speak on local-slack."""

    kinds = (Kind.DM, Kind.GROUP)

    def __init__(self, between: Between, url: str) -> None:
        self.between = between
        self.url = url
        self.adapters: list[Slack] = []
        self.shelf = Shelf()
        self._cursor = Bookmark()
        self._channels = itertools.count()

    def adapter(self) -> Slack:
        adapter = Slack("bot", Api(Secret(TOKEN), self.url, Secret(APP_TOKEN)), self.shelf, pace=BRISK)
        self.adapters.append(adapter)
        return adapter

    @asynccontextmanager
    async def deliver(self, adapter: Adapter, accept: Accept) -> AsyncIterator[None]:
        given = Given(accept, self._cursor)
        async with living(adapter, given):
            await given.is_well()
            yield

    async def chat(self, kind: Kind, who: str = "Ann") -> Address:
        chat = await self.between.private(who) if kind is Kind.DM else f"C0{next(self._channels):03}"
        return Address("slack", "bot", "", chat)

    async def say(self, at: Address, text: str, who: str = "Ann") -> str:
        return await self.between.says(at.chat, text, who, at.thread)

    async def attach(self, at: Address, name: str, content: bytes, who: str = "Ann") -> str:
        return await self.between.attach(at.chat, name, content, who, at.thread)

    async def change(self, at: Address, message: str, text: str, who: str = "Ann") -> None:
        await self.between.control("edit-message", channel=at.chat, ts=message, user=PEOPLE[who], text=text)

    async def delete(self, at: Address, message: str, who: str = "Ann") -> None:
        await self.between.control("delete-message", channel=at.chat, ts=message, user=PEOPLE[who])

    async def read(self, at: Address) -> list[Seen]:
        return await self.between.read(at)

    async def read_as(self, at: Address, who: str) -> list[Seen]:
        return await self.between.read(at, who)

    async def redeliver(self) -> None:
        for kind, payload in list(self.between.told):
            await self.between.deliver(kind, payload)

    async def garble(self) -> None:
        garbage: list[Any] = [7, {}, {"event": 7}, {"event": {"type": "message", "ts": 1}}, {"event": {"files": 7}}]
        garbage.append({"event": {"type": "message", "user": "U1", "text": "x", "channel": "C1", "ts": "soon"}})
        for each in garbage:
            await self.between.deliver("events_api", each)

    async def nowhere(self) -> Address:
        return Address("slack", "bot", "", "C0NOWHERE")


class EventsHarness(SlackHarness):
    """The same, with Slack calling."""

    def __init__(self, between: Between, url: str) -> None:
        super().__init__(between, url)
        self._app: Application | None = None

    def adapter(self) -> SlackByEvents:
        adapter = SlackByEvents("bot", Api(Secret(TOKEN), self.url), Secret(SIGNING), self.shelf, pace=BRISK)
        self.adapters.append(adapter)
        return adapter

    @asynccontextmanager
    async def deliver(self, adapter: Adapter, accept: Accept) -> AsyncIterator[None]:
        assert isinstance(adapter, TakesWebhooks)
        self._app, listener = adapter.webhook(accept), Listener("127.0.0.1", 0)
        self.between.webhook = listener.url
        async with serving(Mounted(self._app), listener, 0.1), super().deliver(adapter, accept):
            yield

    async def forge(self, at: Address, text: str) -> list[int]:
        assert self._app is not None
        event = {"type": "message", "user": PEOPLE["Ann"], "text": text, "channel": at.chat, "ts": f"{time.time():.6f}"}
        body = json.dumps({"type": "event_callback", "event_id": "EvForged", "event": event}).encode()
        now, old = str(int(time.time())), str(int(time.time()) - 301)
        at_header, proof = "X-Slack-Request-Timestamp", "X-Slack-Signature"
        right, guessed = signature(Secret(SIGNING), now, body), signature(Secret("guess"), now, body)
        guesses: list[dict[str, str]] = [
            {},
            {proof: right},
            {at_header: now},
            {at_header: now, proof: guessed},
            {at_header: now, proof: ""},
            {at_header: old, proof: signature(Secret(SIGNING), old, body)},
            {at_header: str(int(now) + 1), proof: right},
        ]
        return [(await post(self._app, "/", body, headers)).status for headers in guesses]


class TestSlack(RenameContract, StepContract, TypingContract, WhisperContract, ChangeContract, DeletionContract):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[SlackHarness]:
        async with slack() as (between, url):
            harness = SlackHarness(between, url)
            yield harness
            for adapter in harness.adapters:
                await adapter.close()


@pytest.mark.second_way
class TestSlackByEvents(
    RenameContract,
    StepContract,
    TypingContract,
    WhisperContract,
    WebhookContract,
    ChangeContract,
    DeletionContract,
):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[EventsHarness]:
        async with slack(calls=True) as (between, url):
            harness = EventsHarness(between, url)
            yield harness
            for adapter in harness.adapters:
                await adapter.close()
