"""Models of two providers that take turns in one conversation: what each of them is really sent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from segue.agents.models.providers import ModelAgent
from segue.core.messages import PLACEHOLDER
from segue.core.settings import AccountSettings, Streams
from segue.testing.chats import Chat
from segue.testing.personas import Telegram
from tests.clients import http_client
from tests.in_process import gateway_on
from tests.servers.aimock import Aimock, aimock, calls, says

THOUGHT = "Nobody else can read this thought."
FIXTURES = [
    calls("sessions_list", {}, "look around"),
    says("I looked.", "look around"),
    says("Well.", response={"reasoning": THOUGHT, "reasoningSignature": "c2lnbmVk"}),
]


class Talk:
    """Ann, who talks with two models, and all that their providers are sent."""

    def __init__(self, server: Aimock, platform: Telegram) -> None:
        self._server = server
        self._ann = platform.person("Ann")
        self._dm: Chat = platform.dm(self._ann)
        self._platform = platform

    async def says(self, text: str) -> str:
        """Say something; returns the answer."""
        count = len(self._dm.replies)
        self._ann.says(text, self._dm)
        replies = await self._platform.changes.until(
            lambda: r if len(r := self._dm.replies) > count and r[-1] != PLACEHOLDER else None,
            lambda: f"{self._dm.replies}",
        )
        await self._platform.settles()
        return replies[-1]

    async def sent(self, path: str) -> dict[str, Any]:
        """The body of the last request, which went to an address."""
        last = (await self._server.journal())[-1]
        assert last["path"] == path
        body: dict[str, Any] = last["body"]
        return body


@asynccontextmanager
async def talking(folder: Path, one: str, two: str) -> AsyncIterator[Talk]:
    platform = Telegram()
    account = AccountSettings(public=True, streams=Streams.WHOLE, agents=("default", "poet"))
    async with (
        aimock(folder, FIXTURES) as server,
        http_client(timeout=60) as client,
        gateway_on(
            folder,
            {"": ModelAgent(server.keys(one), client), "poet": ModelAgent(server.keys(two), client)},
            platform,
            account=account,
            poll=0.05,
        ),
    ):
        yield Talk(server, platform)
        await platform.settles()


PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "anthropic": "/v1/messages"}


@pytest.mark.parametrize(("one", "two"), [("responses", "anthropic"), ("anthropic", "chat")])
async def test_each_knows_what_the_other_was_told_and_undo_sends_the_same_bytes(
    tmp_path: Path, one: str, two: str
) -> None:
    async with talking(tmp_path, one, two) as talk:
        assert await talk.says("my cat is Tom") == "Well."
        assert await talk.says("look around") == "I looked."
        await talk.says("who is my cat?")
        before = json.dumps(await talk.sent(PATHS[one]))
        assert await talk.says("/undo") == "Took back the last exchange."
        assert await talk.says("/agent poet") == "poet answers from here on."
        await talk.says("my dog is Rex")
        sent = json.dumps(await talk.sent(PATHS[two]))
        assert "my cat is Tom" in sent
        assert "sessions_list" in sent, "the call and its result are data for the other one"
        assert THOUGHT not in sent
        await talk.says("and my bird is Kes")
        assert "my dog is Rex" in json.dumps(await talk.sent(PATHS[two]))
        assert await talk.says("/agent default") == "default answers from here on."
        await talk.says("who is my dog?")
        sent = json.dumps(await talk.sent(PATHS[one]))
        assert "my dog is Rex" in sent
        # The swaps and what was said between them are taken back: the same question is the same request.
        assert (await talk.says("/undo 5")).startswith("Took back the last")
        await talk.says("who is my cat?")
        assert json.dumps(await talk.sent(PATHS[one])) == before
