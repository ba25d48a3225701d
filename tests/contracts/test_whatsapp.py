"""The WhatsApp adapter keeps the contracts, with crabline's Cloud API behind it."""

import itertools
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from segue.adapters.shared.rates import Bucket, Rate
from segue.adapters.whatsapp import WhatsApp
from segue.adapters.whatsapp.adapter import PROOF, signature
from segue.adapters.whatsapp.graph import Graph
from segue.adapters.whatsapp.outgoing import Pace
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
    QuoteContract,
    TypingContract,
    WebhookContract,
)
from segue.testing.harness import Given, Seen, living
from tests.servers.whatsapp import APP_SECRET, NUMBER, PEOPLE, TOKEN, VERIFY, Between, change, whatsapp, with_

BRISK = Pace(Rate(1000, 0.001), Bucket(1000, 0.001))
"""crabline allows everything; what WhatsApp allows is tested with a clock in the hand."""


class WhatsAppHarness:
    """Lets the contracts speak on crabline's WhatsApp."""

    kinds = (Kind.DM, Kind.GROUP)

    def __init__(self, between: Between, url: str) -> None:
        self.between = between
        self.url = url
        self.adapters: list[WhatsApp] = []
        self.shelf = Shelf()
        self._app: Application | None = None
        self._groups = itertools.count(1)

    def adapter(self) -> WhatsApp:
        graph = Graph(Secret(TOKEN), NUMBER, self.url)
        proof, word = Secret(APP_SECRET), Secret(VERIFY)
        adapter = WhatsApp("main", graph, self.shelf, app_secret=proof, verify_token=word, pace=BRISK)
        self.adapters.append(adapter)
        return adapter

    @asynccontextmanager
    async def deliver(self, adapter: Adapter, accept: Accept) -> AsyncIterator[None]:
        assert isinstance(adapter, TakesWebhooks)
        self._app, listener = adapter.webhook(accept), Listener("127.0.0.1", 0)
        async with serving(Mounted(self._app), listener, 0.1), living(adapter, Given(accept)):
            self.between.webhook = listener.url
            yield
            self.between.webhook = ""

    async def chat(self, kind: Kind, who: str = "Ann") -> Address:
        chat = PEOPLE[who].number if kind is Kind.DM else f"Y2FwaV9ncm91cDo{next(self._groups)}"
        return Address("whatsapp", "main", "", chat)

    async def say(self, at: Address, text: str, who: str = "Ann") -> str:
        return await self.between.says(at.chat, text, who)

    async def attach(self, at: Address, name: str, content: bytes, who: str = "Ann") -> str:
        self.between.files[name] = content
        document = {"id": name, "filename": name, "mime_type": "image/png"}
        return await self.between.says(at.chat, "a file", who, with_(type="document", document=document))

    async def change(self, at: Address, message: str, text: str, who: str = "Ann") -> None:
        edit = {"original_message_id": message, "message": {"type": "text", "text": {"body": text}}}
        await self.between.says(at.chat, text, who, with_(type="edit", edit=edit))

    async def delete(self, at: Address, message: str, who: str = "Ann") -> None:
        gone = {"original_message_id": message}
        await self.between.says(at.chat, "gone", who, with_(type="revoke", revoke=gone))

    async def quote(self, at: Address, message: str, text: str, who: str = "Ann") -> str:
        return await self.between.says(at.chat, text, who, with_(context={"from": NUMBER, "id": message}))

    async def read(self, at: Address) -> list[Seen]:
        return self.between.read(at)

    async def redeliver(self) -> None:
        for body in list(self.between.told):
            self.between.tell(body)

    async def garble(self) -> None:
        garbage: list[Any] = [7, [], {}, {"object": "whatsapp_business_account", "entry": 7}]
        at = str(int(time.time()))
        messages: list[Any] = [7, {}, {"id": "wamid.x"}, {"id": "wamid.y", "from": "1", "timestamp": "soon"}]
        messages.append({"id": "wamid.z", "timestamp": at, "type": "text", "text": {"body": "whose?"}})
        messages.append({"id": "wamid.w", "from": "1", "timestamp": at, "image": 7})
        garbage += [*(change(messages=[message]) for message in messages), change(statuses=[7])]
        for each in garbage:
            self.between.tell(each)

    async def nowhere(self) -> Address:
        return Address("whatsapp", "main", "", "0")

    async def forge(self, at: Address, text: str) -> list[int]:
        assert self._app is not None
        said = {"id": "wamid.F", "from": at.chat, "timestamp": str(int(time.time())), "text": {"body": text}}
        body = json.dumps(change(messages=[{**said, "type": "text"}])).encode()
        right = signature(Secret(APP_SECRET), body)
        guesses: list[dict[str, str]] = [
            {},
            {PROOF: ""},
            {PROOF: signature(Secret("guess"), body)},
            {PROOF: right.removeprefix("sha256=")},
            {PROOF: right.replace("sha256", "sha1")},
            {"X-Hub-Signature": right},
            {PROOF: signature(Secret(APP_SECRET), body + b" ")},
        ]
        return [(await post(self._app, "/", body, headers)).status for headers in guesses]


class TestWhatsApp(TypingContract, WebhookContract, ChangeContract, DeletionContract, QuoteContract):
    @pytest.fixture
    async def harness(self, tmp_path: Path) -> AsyncIterator[WhatsAppHarness]:
        async with whatsapp(tmp_path) as (between, url):
            harness = WhatsAppHarness(between, url)
            yield harness
            for adapter in harness.adapters:
                await adapter.close()
