"""Agents that misbehave, whoever brought them: the others go on, the person is told, and the next message runs."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent as Pydantic
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from segue.agents.given import Given
from segue.core.contracts.agents import AgentState
from segue.core.messages import ToolCall, ToolResult
from segue.errors import AgentFailed
from segue.runtime.gateway import Gateway
from segue.runtime.telemetry.logs import Lines
from segue.runtime.turns.failures import BROKEN, FAILED
from segue.testing.personas import Telegram
from tests.in_process import gateway_on

GIVEN_UP = FAILED.format(times=2)


def running(path: Path, platform: Telegram, agent: Given, **more: Any) -> AbstractAsyncContextManager[Gateway]:
    """A gateway with little patience."""
    plain: dict[str, Any] = {"turn_silence": 1.0, "attempts": 2}
    return gateway_on(path, agent, platform, **(plain | more))


class Panic(BaseException):
    """How libraries that are written in Rust tell that they broke."""


async def misbehave(text: str) -> AsyncIterator[Any]:
    """What each of these people has coming."""
    if "hang" in text:
        await asyncio.Event().wait()
    if "stall" in text:
        yield "I was about to"
        await asyncio.Event().wait()
    if "crash" in text:
        raise OSError("the disk is gone")
    if "cancel itself" in text:
        raise asyncio.CancelledError
    if "panic" in text:
        raise Panic
    if "garbage" in text:
        yield {"role": "assistant", "content": os.urandom(8)}
    if "slow" in text:
        for word in ["one", " two", " three"]:
            await asyncio.sleep(0.1)
            yield word
        return
    yield f"you said {text}"


async def take_long(text: str) -> AsyncIterator[Any]:
    """The same by one who may also give up by itself, or never come to an end."""
    if "wait in vain" in text:
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()
    while "go on" in text:
        await asyncio.sleep(0.1)
        yield "and"
    async for piece in misbehave(text):
        yield piece


async def by_model(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
    """The same by a model that pydantic-ai runs."""
    last = [part for m in messages if isinstance(m, ModelRequest) for part in m.parts][-1]
    assert isinstance(last, UserPromptPart)
    async for piece in misbehave(str(last.content)):
        yield piece


@pytest.fixture(params=["function", "pydantic-ai"])
def agent(request: pytest.FixtureRequest) -> Given:
    return misbehave if request.param == "function" else Pydantic(FunctionModel(stream_function=by_model))


@pytest.mark.parametrize("trouble", ["hang", "stall", "crash", "garbage", "cancel itself", "panic"])
async def test_it_fails_alone_its_person_is_told_and_the_next_message_runs(
    tmp_path: Path, agent: Given, trouble: str
) -> None:
    platform = Telegram()
    ann, bob = platform.person("Ann"), platform.person("Bob")
    hers, his = platform.dm(ann), platform.dm(bob)
    async with running(tmp_path, platform, agent):
        ann.says(f"please {trouble}", hers)
        bob.says("hello", his)
        await his.reads("you said hello")
        await hers.reads(BROKEN if trouble == "garbage" else GIVEN_UP)
        ann.says("and now?", hers)
        await hers.reads("you said and now?")
        await platform.settles()
    assert his.replies == ["you said hello"]
    assert len(hers.replies) == 2
    assert not any("about to" in reply for reply in hers.replies)


async def test_one_that_would_end_the_process_fails_alone(tmp_path: Path) -> None:
    async def leaves(text: str) -> str:
        if "leave" in text:
            sys.exit(3)
        return f"you said {text}"

    platform = Telegram()
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    async with running(tmp_path, platform, leaves):
        ann.says("leave", dm)
        await dm.reads(GIVEN_UP)
        ann.says("and now?", dm)
        await dm.reads("you said and now?")


@pytest.mark.parametrize(
    ("trouble", "failure"),
    [("crash", "OSError"), ("wait in vain", "TimeoutError"), ("hang", "Hung"), ("go on", "Hung")],
)
async def test_the_log_says_when_and_how_it_failed_and_nothing_that_was_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, trouble: str, failure: str
) -> None:
    platform = Telegram()
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    async with running(tmp_path, platform, take_long, attempts=1, turn_total=1.0):
        ann.says(f"please {trouble}", dm)
        await dm.reads(FAILED.format(times=1))
    [record] = [record for record in caplog.records if "failed" in record.getMessage()]
    line = json.loads(Lines().format(record))
    assert datetime.fromisoformat(line["at"]).tzinfo is UTC
    assert line["failure"] == failure
    assert re.fullmatch(r"/.*\.py:\d+", line["where"])
    assert "disk" not in str(line)


async def test_a_slow_one_is_waited_for(tmp_path: Path, agent: Given) -> None:
    platform = Telegram()
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    async with running(tmp_path, platform, agent):
        ann.says("be slow", dm)
        await dm.reads("one two three")
    assert dm.replies == ["one two three"]


async def test_a_bug_is_told_to_the_host_in_private_and_not_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    platform, tries = Telegram(), []
    ann, bob = platform.person("Ann"), platform.person("Bob")

    async def buggy(text: str) -> str:
        tries.append(text)
        if "bug" in text:
            raise KeyError("shelf")
        if "key" in text:
            raise AgentFailed("The provider refuses the key.", "See `api_key`.", passes=False)
        return "fine"

    async with running(tmp_path, platform, buggy, hosts=(ann.identity,)):
        hers, his = platform.dm(ann), platform.dm(bob)
        ann.says("a bug", hers)
        ann.says("well?", hers)
        await hers.reads("fine")
        told = hers.replies[0]
        assert told.startswith("The agent failed: KeyError: 'shelf' (")
        assert "test_bad_agents.py:" in told
        assert told.endswith("The log has the traceback. Your message is kept; /retry asks again.")
        ann.says("no key", hers)
        await hers.reads("The provider refuses the key. See `api_key`. Your message is kept; /retry asks again.")
        bob.says("a bug", his)
        await his.reads(BROKEN)
        group = platform.group("The Club")
        ann.says("a bug", group)
        await group.reads(BROKEN)
    assert tries == ["a bug", "well?", "no key", "a bug", "a bug"]
    record = next(record for record in caplog.records if record.exc_info)
    assert "in buggy" in json.loads(Lines().format(record))["stack"][-1]


async def test_what_nothing_can_keep_is_cleaned_at_the_door(tmp_path: Path) -> None:
    async def speaks(text: str) -> AsyncIterator[Any]:
        yield ToolCall("c1", "look", {"at\0": [f"{text}\ud800", 1]})
        yield ToolResult("c1", "half \ude00")
        yield AgentState({"seen": "\0"})
        yield "a\0b \ud83d\ude00 \ud83d"

    platform = Telegram()
    ann = platform.person("Ann")
    dm = platform.dm(ann)
    async with running(tmp_path, platform, speaks, attempts=1):
        ann.says("go", dm)
        await dm.reads("ab 😀 \ufffd")
        await platform.settles()
    assert dm.replies == ["ab 😀 \ufffd"]
