"""The Telegram adapter keeps the contracts, with crabline's Telegram behind it."""

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from segue.adapters.shared.rates import Rate
from segue.adapters.telegram import Telegram, TelegramByWebhook
from segue.adapters.telegram.adapter import HEADER, secret_of
from segue.adapters.telegram.api import Pace
from segue.core.contracts.adapters import Accept, Adapter, TakesWebhooks
from segue.core.lanes import Address, Kind
from segue.core.values import Secret
from segue.runtime.server.app import Mounted
from segue.runtime.server.listeners import Listener, serving
from segue.testing import Shelf
from segue.testing.asgi import Application, post
from segue.testing.contracts import (
    ChangeContract,
    EditContract,
    QuoteContract,
    ThreadContract,
    TypingContract,
    WebhookContract,
)
from segue.testing.harness import Given, Seen, living
from tests.ports import free_port
from tests.servers.crabline import TOKEN, Between, telegram

PEOPLE = {"Ann": 501, "Ben": 502}
BRISK = Pace(*[Rate(1000, 0.001)] * 5)
"""crabline allows everything; what Telegram allows is tested with a clock in the hand."""


class TelegramHarness:
    """Lets the contracts speak on crabline's Telegram."""

    kinds = (Kind.DM, Kind.GROUP)

    def __init__(self, between: Between, url: str) -> None:
        self.between = between
        self.url = url
        self.adapters: list[Telegram] = []
        self.shelf = Shelf()
        self._private = {"Ann": itertools.count(501, 1000), "Ben": itertools.count(502, 1000)}

    def adapter(self) -> Telegram:
        adapter = Telegram("bot", Secret(TOKEN), self.shelf, self.url, pace=BRISK)
        self.adapters.append(adapter)
        return adapter

    @asynccontextmanager
    async def deliver(self, adapter: Adapter, accept: Accept) -> AsyncIterator[None]:
        async with living(adapter, Given(accept)):
            yield

    async def chat(self, kind: Kind, who: str = "Ann") -> Address:
        chat = str(next(self._private[who])) if kind is Kind.DM else await self.between.forum()
        return Address("telegram", "bot", "", chat)

    async def say(self, at: Address, text: str, who: str = "Ann") -> str:
        return await self.between.says(at.chat, text, PEOPLE[who], at.thread)

    async def attach(self, at: Address, name: str, content: bytes, who: str = "Ann") -> str:
        self.between.files[name] = content
        document = {"file_id": name, "file_name": name, "mime_type": "image/png", "file_size": len(content)}

        def attached(update: dict[str, Any]) -> dict[str, Any]:
            said = {key: value for key, value in update["message"].items() if key != "text"}
            return {**update, "message": {**said, "document": document}}

        return await self.between.says(at.chat, "a file", PEOPLE[who], at.thread, attached)

    async def change(self, at: Address, message: str, text: str, who: str = "Ann") -> None:
        def edited(update: dict[str, Any]) -> dict[str, Any]:
            said = update.pop("message")
            return {**update, "edited_message": {**said, "message_id": int(message), "edit_date": said["date"]}}

        await self.between.says(at.chat, text, PEOPLE[who], at.thread, edited)

    async def quote(self, at: Address, message: str, text: str, who: str = "Ann") -> str:
        def answering(update: dict[str, Any]) -> dict[str, Any]:
            said = update["message"]
            bot = {"id": 424242, "is_bot": True, "first_name": "Segue"}
            reply = {"message_id": int(message), "date": 1, "chat": said["chat"], "from": bot, "text": "ask me"}
            return {**update, "message": {**said, "reply_to_message": reply}}

        return await self.between.says(at.chat, text, PEOPLE[who], at.thread, answering)

    async def read(self, at: Address) -> list[Seen]:
        return self.between.read(at)

    async def redeliver(self) -> None:
        self.between.tell_again()

    async def garble(self) -> None:
        garbage: list[dict[str, Any]] = [{"message": 7}, {"message": {"message_id": "x"}}, {"callback_query": []}]
        for each in garbage:
            self.between.tell({"update_id": self.between.next_update, **each})

    async def nowhere(self) -> Address:
        return Address("telegram", "bot", "", "0")


class WebhookHarness(TelegramHarness):
    """The same, with Telegram calling."""

    def __init__(self, between: Between, url: str) -> None:
        super().__init__(between, url)
        self._app: Application | None = None
        self._port = free_port()

    def adapter(self) -> TelegramByWebhook:
        webhook = f"http://127.0.0.1:{self._port}"
        adapter = TelegramByWebhook("bot", Secret(TOKEN), self.shelf, self.url, webhook=webhook, pace=BRISK)
        self.adapters.append(adapter)
        return adapter

    @asynccontextmanager
    async def deliver(self, adapter: Adapter, accept: Accept) -> AsyncIterator[None]:
        assert isinstance(adapter, TakesWebhooks)
        self._app = adapter.webhook(accept)
        called = self.between.doctoring(self._app)
        async with serving(Mounted(called), Listener("127.0.0.1", self._port), 0.1), living(adapter, Given(accept)):
            yield

    async def redeliver(self) -> None:
        assert self._app is not None
        for update in self.between.told:
            await post(self._app, "/", json.dumps(update).encode(), {HEADER: secret_of(Secret(TOKEN), "bot")})

    async def garble(self) -> None:
        assert self._app is not None
        for body in (b"{", b"[]", b'{"update_id": "x"}', b"\xff", b'{"update_id": 1, "message": {"message_id": 2}}'):
            await post(self._app, "/", body, {HEADER: secret_of(Secret(TOKEN), "bot")})

    async def forge(self, at: Address, text: str) -> list[int]:
        assert self._app is not None
        body = json.dumps({"update_id": 1, "message": {"message_id": 1, "date": 1, "text": text}}).encode()
        guesses: list[dict[str, str]] = [{}, {HEADER: "a guess"}, {HEADER: secret_of(Secret("1:guess"), "bot")}]
        return [(await post(self._app, "/", body, headers)).status for headers in guesses]


class TestTelegram(ThreadContract, EditContract, TypingContract, ChangeContract, QuoteContract):
    @pytest.fixture
    async def harness(self, tmp_path: Path) -> AsyncIterator[TelegramHarness]:
        async with telegram(tmp_path) as (between, url):
            harness = TelegramHarness(between, url)
            yield harness
            for adapter in harness.adapters:
                await adapter.close()


@pytest.mark.second_way
class TestTelegramByWebhook(
    ThreadContract, EditContract, TypingContract, WebhookContract, ChangeContract, QuoteContract
):
    @pytest.fixture
    async def harness(self, tmp_path: Path) -> AsyncIterator[WebhookHarness]:
        async with telegram(tmp_path) as (between, url):
            harness = WebhookHarness(between, url)
            yield harness
            for adapter in harness.adapters:
                await adapter.close()
