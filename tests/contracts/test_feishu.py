"""The Feishu adapter keeps the contracts, with crabline's Feishu behind it: by its connection, and called."""

import itertools
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from segue.adapters.feishu import Feishu, FeishuByEvents
from segue.adapters.feishu.api import Api
from segue.adapters.feishu.outgoing import Pace
from segue.adapters.shared.rates import Rate
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
    EditContract,
    QuoteContract,
    ThreadContract,
    WebhookContract,
)
from segue.testing.harness import Given, Seen, living
from tests.servers.feishu import APP, KEY, NOWHERE, PEOPLE, SECRET, TOKEN, Between, feishu, sealed, signed

BRISK = Pace(Rate(1000, 0.001), Rate(1000, 0.001))
"""crabline allows everything; what Feishu allows is tested with a clock in the hand."""


class FeishuHarness:
    """Lets the contracts speak on crabline's Feishu."""

    kinds = (Kind.DM, Kind.GROUP)

    def __init__(self, between: Between, url: str) -> None:
        self.between = between
        self.url = url
        self.adapters: list[Feishu] = []
        self.shelf = Shelf()
        self._groups = itertools.count()

    def adapter(self) -> Feishu:
        adapter = Feishu("bot", Api(APP, Secret(SECRET), self.url), self.shelf, pace=BRISK)
        self.adapters.append(adapter)
        return adapter

    @asynccontextmanager
    async def deliver(self, adapter: Adapter, accept: Accept) -> AsyncIterator[None]:
        given = Given(accept)
        async with living(adapter, given):
            await given.is_well()
            yield

    async def chat(self, kind: Kind, who: str = "Ann") -> Address:
        chat = self.between.private(who) if kind is Kind.DM else f"oc_group_{next(self._groups)}"
        return Address("feishu", "bot", "", chat)

    async def say(self, at: Address, text: str, who: str = "Ann") -> str:
        return await self.between.says(at.chat, text, who, at.thread)

    async def attach(self, at: Address, name: str, content: bytes, who: str = "Ann") -> str:
        return await self.between.attach(at.chat, name, content, who, at.thread)

    async def delete(self, at: Address, message: str, who: str = "Ann") -> None:
        del at, who
        await self.between.recalls(message)

    async def change(self, at: Address, message: str, text: str, who: str = "Ann") -> None:
        del at, who
        await self.between.changes_to(message, text)

    async def quote(self, at: Address, message: str, text: str, who: str = "Ann") -> str:
        def answering(payload: dict[str, Any]) -> dict[str, Any]:
            payload["event"]["message"] |= {"parent_id": message, "root_id": message}
            return payload

        return await self.between.says(at.chat, text, who, "", answering)

    async def read(self, at: Address) -> list[Seen]:
        return self.between.read(at)

    async def redeliver(self) -> None:
        for payload in list(self.between.told):
            await self.between.deliver(payload)

    async def garble(self) -> None:
        header = {"event_type": "im.message.receive_v1", "event_id": "1"}
        sender = {"sender_id": {"open_id": "ou_x"}, "sender_type": "user"}
        texts = [{"message_id": "om_x", "message_type": "text", "content": each} for each in ("{", "7", "{}")]
        garbage: list[Any] = [7, {}, {"header": 7}, {"header": {}}, {"header": header, "event": {"message": 7}}]
        garbage += [{"header": header, "event": {"sender": sender, "message": each}} for each in texts]
        for each in garbage:
            await self.between.deliver(each)

    async def nowhere(self) -> Address:
        return Address("feishu", "bot", "", NOWHERE)


class EventsHarness(FeishuHarness):
    """The same, with Feishu calling."""

    def __init__(self, between: Between, url: str) -> None:
        super().__init__(between, url)
        self._app: Application | None = None

    def adapter(self) -> FeishuByEvents:
        api = Api(APP, Secret(SECRET), self.url)
        adapter = FeishuByEvents("bot", api, Secret(TOKEN), Secret(KEY), self.shelf, pace=BRISK)
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
        event: dict[str, Any] = {
            "sender": {"sender_id": {"open_id": PEOPLE["Ann"]}, "sender_type": "user"},
            "message": {"message_id": "om_forged", "chat_id": at.chat, "chat_type": "p2p", "message_type": "text"},
        }
        event["message"] |= {"content": json.dumps({"text": text}), "create_time": "1"}
        header = {"event_id": "forged", "event_type": "im.message.receive_v1", "token": TOKEN}
        payload = {"schema": "2.0", "header": header, "event": event}
        body, plain, guessed = sealed(payload), json.dumps(payload).encode(), sealed(payload, "a guess")
        other = sealed({**payload, "header": {**header, "token": "a guess"}})
        right = signed(body)
        challenge = sealed({"type": "url_verification", "token": "a guess", "challenge": "x"})
        guesses: list[tuple[bytes, dict[str, str]]] = [
            (body, {}),
            (body, signed(body, "a guess")),
            (body, {**right, "X-Lark-Signature": ""}),
            (body, {**right, "X-Lark-Request-Nonce": "another"}),
            (body, signed(body, at=time.time() - 86_401)),
            (plain, signed(plain)),
            (guessed, signed(guessed)),
            (guessed, signed(guessed, "a guess")),
            (other, signed(other)),
            (challenge, {}),
            (challenge, signed(challenge)),
            (b'{"encrypt": "AAAA"}', signed(b'{"encrypt": "AAAA"}')),
            (b"{}", signed(b"{}")),
        ]
        return [(await post(self._app, "/", *each)).status for each in guesses]


class TestFeishu(ThreadContract, EditContract, ChangeContract, QuoteContract, DeletionContract):
    @pytest.fixture
    async def harness(self, tmp_path: Path) -> AsyncIterator[FeishuHarness]:
        async with feishu(tmp_path) as (between, url):
            harness = FeishuHarness(between, url)
            yield harness
            for adapter in harness.adapters:
                await adapter.close()


@pytest.mark.second_way
class TestFeishuByEvents(
    ThreadContract, EditContract, ChangeContract, QuoteContract, DeletionContract, WebhookContract
):
    @pytest.fixture
    async def harness(self, tmp_path: Path) -> AsyncIterator[EventsHarness]:
        async with feishu(tmp_path, calls=True) as (between, url):
            harness = EventsHarness(between, url)
            yield harness
            for adapter in harness.adapters:
                await adapter.close()
