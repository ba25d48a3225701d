"""Turns of a model behind a gateway: what people read and what providers are sent, with trouble on the way."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from segue.agents.models.providers import ModelAgent
from segue.core.messages import Summary
from segue.core.settings import AccountSettings, Streams
from segue.runtime.turns.failures import BROKEN, FAILED, REFUSED
from segue.store import Store
from segue.testing.personas import Telegram
from tests.clients import http_client
from tests.full import full
from tests.in_process import gateway_on
from tests.servers.aimock import MODELS, Aimock, Fixture, aimock, says

SAID = "The first half of it was told, and the second was not, as you see."
TOO_LONG = {
    "chat": {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"},
    "responses": {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"},
    "anthropic": {"message": "prompt is too long: 201 tokens > 200 maximum", "type": "invalid_request_error"},
    "google": {
        "message": "The input token count (201) exceeds the maximum number of tokens allowed (200)",
        "type": "INVALID_ARGUMENT",
    },
    "ollama": {"message": "This model's maximum context length is 200 tokens", "type": "invalid_request_error"},
}
"""How each provider says that a prompt is more than its model takes."""


class Stage:
    """Ann, who talks to a model in Telegram, and what the provider was sent."""

    def __init__(self, server: Aimock, store: Store, platform: Telegram) -> None:
        self.server = server
        self.store = store
        self.platform = platform
        self.ann = platform.person("Ann")
        self.dm = platform.dm(self.ann)

    async def says(self, text: str, answer: str) -> None:
        """Say something, and wait until it is answered so."""
        self.ann.says(text, self.dm)
        await self.dm.reads(answer)

    async def sent(self) -> list[list[str]]:
        """The messages of every request."""
        bodies = [entry["body"] for entry in await self.server.journal()]
        return [[json.dumps(m) for m in body.get("messages") or body["input"]] for body in bodies]

    async def summaries(self) -> list[str]:
        """The summaries on the path of the session."""
        person = await self.store.person(self.ann.identity)
        session = await self.store.bound(await self.store.lane(self.dm.place, person))
        assert session is not None
        path = await self.store.path(session.id)
        return [part.text for entry in path for part in entry.parts if isinstance(part, Summary)]


@asynccontextmanager
async def talking(
    folder: Path, kind: str, fixtures: Sequence[Fixture], patience: float = 60.0, **keys: Any
) -> AsyncIterator[Stage]:
    """A gateway whose agent is a model of that provider's; it waits for nothing."""
    platform = Telegram()
    account = AccountSettings(public=True, streams=Streams.LIVE)

    async def at_once(_: float) -> None:
        """Seconds that a test needn't wait."""

    async with (
        aimock(folder, fixtures) as server,
        http_client(timeout=60) as client,
        gateway_on(
            folder,
            ModelAgent(server.keys(kind, **keys), client, at_once),
            platform,
            account=account,
            turn_silence=patience,
            attempts=2,
        ) as gateway,
    ):
        yield Stage(server, gateway.store, platform)
        await platform.settles()


def tokens(given: int) -> dict[str, Any]:
    """The size of a prompt, in the words of every API."""
    return {"usage": {"prompt_tokens": given, "completion_tokens": 5, "input_tokens": given, "output_tokens": 5}}


@pytest.mark.parametrize("kind", sorted(MODELS))
async def test_half_a_text_is_never_shown_twice(tmp_path: Path, kind: str) -> None:
    broken = {"truncateAfterChunks": 9 if kind == "responses" else 5, "latency": 30}
    fixtures = [says(SAID, "tell me", match={"sequenceIndex": 0}, **broken), says(SAID, "tell me")]
    async with talking(tmp_path, kind, fixtures) as stage:
        await stage.says("tell me", SAID)
        asked = await stage.sent()
    assert len(asked) == 2
    assert asked[0] == asked[1], "what was told of the half one is no part of what is asked again"
    assert stage.dm.replies == [SAID]


@pytest.mark.parametrize("kind", [kind if kind in {"anthropic", "chat"} else full(kind) for kind in sorted(MODELS)])
async def test_a_provider_that_hangs_is_given_up_and_the_next_message_runs(tmp_path: Path, kind: str) -> None:
    # Some providers take all that nobody answered as one message: what is said last decides.
    fixtures = [says("hello", "hello"), says("never", "hang", latency=600_000)]
    async with talking(tmp_path, kind, fixtures, patience=2.0) as stage:
        bob = stage.platform.person("Bob")
        his = stage.platform.dm(bob)
        stage.ann.says("please hang", stage.dm)
        bob.says("hello", his)
        await his.reads("hello")
        await stage.dm.reads(FAILED.format(times=2))
        assert [body for body in await stage.sent() if "hang" in body[-1]]
        await stage.says("hello again", "hello")
    assert his.replies == ["hello"]
    assert stage.dm.replies == [FAILED.format(times=2), "hello"]


@pytest.mark.parametrize("kind", sorted(MODELS))
async def test_through_trouble_of_every_sort_each_answer_comes_once_and_the_prompt_keeps_within_the_window(
    tmp_path: Path, kind: str
) -> None:
    fixtures = [
        says("In short: they counted.", "Sum up this conversation", response=tokens(900)),
        *(says(f"answer {n}", f"question {n}", response=tokens(850 if n == 3 else 300)) for n in range(1, 7)),
    ]
    async with talking(tmp_path, kind, fixtures, window=1000, retries=20) as stage:
        await stage.server.chaos(dropRate=0.15, malformedRate=0.15, disconnectRate=0.15, rateLimitRate=0.15)
        for n in range(1, 7):
            await stage.says(f"question {n}", f"answer {n}")
        await stage.server.calm()
        sent = await stage.sent()
        assert await stage.summaries() == ["In short: they counted."]
    assert stage.dm.replies == [f"answer {n}" for n in range(1, 7)]
    for n in range(1, 7):
        last = [" ".join(messages) for messages in sent if f"question {n}" in messages[-1]][-1]
        # The third came near the window: from the fourth on the summary stands for what was said before.
        known = range(1, n) if n <= 3 else range(4, n)
        assert [m for m in range(1, 7) if f"answer {m}" in last] == list(known)
        assert ("In short: they counted." in last) is (n > 3)


@pytest.mark.parametrize("kind", sorted(MODELS))
async def test_what_the_provider_finds_too_long_is_summed_up_and_asked_again(tmp_path: Path, kind: str) -> None:
    fixtures = [
        says("In short: a greeting.", "Sum up this conversation"),
        {
            "match": {"userMessage": "second", "sequenceIndex": 0},
            "response": {"error": TOO_LONG[kind], "status": 400},
        },
        says("one", "first"),
        says("two", "second"),
    ]
    async with talking(tmp_path, kind, fixtures, window=10_000_000) as stage:
        await stage.says("first", "one")
        await stage.says("second", "two")
        [_, refused, summed_up, again] = map(" ".join, await stage.sent())
        assert await stage.summaries() == ["In short: a greeting."]
    assert "one" in refused
    assert "Sum up this conversation" in summed_up
    assert "In short: a greeting." in again
    assert '"one"' not in again
    assert stage.dm.replies == ["one", "two"]


@pytest.mark.parametrize("kind", ["chat", "anthropic"])
async def test_a_message_that_the_provider_refuses_is_set_aside_and_can_be_asked_again(
    tmp_path: Path, kind: str
) -> None:
    refused = {"message": "that is not allowed", "type": "invalid_request_error"}
    fixtures = [
        says("one", "first"),
        {
            "match": {"userMessage": "poison", "sequenceIndex": 0},
            "response": {"error": refused, "status": 400},
        },
        says("an antidote", "poison"),
        says("three", "third"),
        # Some providers take all that nobody answered as one message: what is said last decides.
        says("five", "fifth"),
        {"match": {"userMessage": "break"}, "response": {"error": refused, "status": 401}},
    ]
    async with talking(tmp_path, kind, fixtures) as stage:
        await stage.says("first", "one")
        await stage.says("poison", REFUSED)
        await stage.says("third", "three")
        await stage.says("/undo", "Took back the last exchange.")
        await stage.says("/retry", "an antidote")
        await stage.says("break", BROKEN)
        await stage.says("fifth", "five")
        sent = await stage.sent()
    third, again, fifth = sent[2], sent[3], sent[5]
    assert third[: len(sent[0])] == sent[0], "the prompt so far keeps its bytes"
    assert "poison" not in " ".join(third)
    assert "poison" in again[-1]
    assert "refuses" not in " ".join(again), "what is asked again wasn't refused yet"
    assert [line for line in third if "gateway" in line and "is set aside" in line]
    assert [line for line in fifth if "gateway" in line and BROKEN in line]
    assert not [line for line in third + fifth if "gateway" not in line and ("set aside" in line or BROKEN in line)]
