"""The example agents of the ACP library: they say again all that they are told, so that what they see can be read."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from segue.agents.acp.agent import AcpAgent
from segue.agents.acp.keys import AcpKeys
from segue.core.messages import Text
from segue.core.settings import GatewaySettings
from segue.core.transcripts import Role
from segue.testing import PERSONAS
from segue.testing.contracts.agents import events_of, work
from segue.testing.waits import PATIENCE
from tests.servers import acp_examples
from tests.stories.square import Square

examples = pytest.mark.parametrize("example", ["agent.py", "echo_agent.py"])
one = pytest.mark.parametrize("square", [pytest.param((PERSONAS[0], "sqlite"), id="sqlite")], indirect=True)


@asynccontextmanager
async def running(example: str, folder: Path) -> AsyncIterator[AcpAgent]:
    """An example, whose process ends with the block."""
    python, files = acp_examples()
    agent = AcpAgent(AcpKeys((str(python), str(files / example)), folder=folder))
    try:
        yield agent
    finally:
        await agent.close()


@asynccontextmanager
async def talking(square: Square, example: str, folder: Path) -> AsyncIterator[AcpAgent]:
    """The gateway runs with an example."""
    async with running(example, folder) as agent:
        square.agent = agent
        async with square.open(GatewaySettings(attempts=2)):
            yield agent


async def until(so: Callable[[], bool]) -> None:
    """Wait for a fact that nothing tells."""
    async with asyncio.timeout(PATIENCE):
        while not so():  # noqa: ASYNC110 -- nothing here could set an event
            await asyncio.sleep(0.02)


async def told(square: Square, text: str) -> str:
    """All that the agent was told with some last words, as it says it again; a chat may show that in pieces."""
    async with asyncio.timeout(PATIENCE):
        while True:
            *_, last = await square.store.path((await square.session()).id)
            if last.author.role is Role.AGENT and last.text.endswith(text):
                return last.text
            await asyncio.sleep(0.02)


async def tells(square: Square, text: str) -> str:
    """Ann says something; returns all that the agent was told with it."""
    square.passes(1)
    square.ann.says(text, square.dm)
    return await told(square, text)


async def in_a_turn(square: Square, agent: AcpAgent, text: str) -> int:
    """Ann says something to a process that stands still, so that the turn doesn't end; returns its id."""
    assert agent.process is not None
    os.killpg(agent.process.pid, signal.SIGSTOP)
    square.passes(1)
    square.ann.says(text, square.dm)
    await until(lambda: bool(agent._prompted))
    return agent.process.pid


@examples
async def test_what_it_says_comes_piece_by_piece(tmp_path: Path, example: str) -> None:
    async with running(example, tmp_path) as agent:
        events = await events_of(agent, work("I like apples"))
        pieces = [event.text for event in events if isinstance(event, Text)]
        assert pieces[-2:] == ["You talk to Ann.", "I like apples"]


@examples
@one
async def test_it_is_stopped_killed_and_taken_back_and_knows_what_was_said(
    square: Square, tmp_path: Path, example: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "segue.agents.acp")
    async with talking(square, example, tmp_path) as agent:
        assert "Where you are" in await square.says("I like apples")
        pid = await in_a_turn(square, agent, "I like pears")
        assert await square.says("/stop") == "(Stopped.)"
        os.killpg(pid, signal.SIGCONT)
        seen = await tells(square, "I like plums")
        assert "apples" not in seen, "it has its session in memory"
        assert "pears" not in seen, "what it says to a turn that was stopped is no answer to the next"
        if example == "agent.py":
            await until(lambda: caplog.text.count("Received cancel notification") == 1)
        pid = await in_a_turn(square, agent, "I like figs")
        os.killpg(pid, signal.SIGKILL)
        seen = await told(square, "I like figs")
        said = ["I like apples", "I like pears", "I like plums"]
        assert [seen.count(f'{{"role":"user","content":"{words}"}}') for words in said] == [1, 1, 1]
        assert "was cut off" in seen
        assert agent.process is not None
        assert agent.process.pid != pid
        assert "figs" not in await tells(square, "I like kiwis")
        square.passes(1)
        square.ann.says("/undo", square.dm)
        seen = await tells(square, "I like dates")
        assert "I like figs" in seen
        assert "kiwis" not in seen
