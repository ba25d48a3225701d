"""ACP agents that others wrote, on a mock of their model's provider: one story with OpenCode and with Claude Code."""

import asyncio
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from segue.agents.acp.agent import AcpAgent
from segue.agents.acp.keys import AcpKeys
from segue.core.settings import GatewaySettings
from segue.core.values import Secret
from segue.errors import AgentFailed
from segue.testing import PERSONAS
from segue.testing.waits import PATIENCE
from tests.servers import harnesses, node
from tests.servers.aimock import Aimock, aimock, calls, says
from tests.stories.square import Square

_FOLDERS = {"HOME": "", "XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config", "XDG_CACHE_HOME": "cache"}


def opencode(server: Aimock) -> tuple[tuple[str, ...], dict[str, str]]:
    """The program, and what it has to know of the model."""
    program = harnesses() / "opencode-linux-x64" / "bin" / "opencode"
    if not program.exists():
        pytest.skip("OpenCode isn't installed: it is there for Linux on x64 only")
    options = {"baseURL": f"{server.url}/v1", "apiKey": "key"}
    models = {"gpt-4o": {"name": "Mock"}}
    config = {
        "model": "mock/gpt-4o",
        "small_model": "mock/gpt-4o",
        "autoupdate": False,
        "share": "disabled",
        "permission": {"bash": "ask"},
        "enabled_providers": ["mock"],
        "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "options": options, "models": models}},
    }
    return (str(program), "acp"), {"OPENCODE_CONFIG_CONTENT": json.dumps(config), "OPENCODE_DISABLE_MODELS_FETCH": "1"}


def claude(server: Aimock) -> tuple[tuple[str, ...], dict[str, str]]:
    """The same of Claude Code, by its adapter."""
    program = harnesses() / "@agentclientprotocol" / "claude-agent-acp" / "dist" / "index.js"
    quiet = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER")
    key = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "key"}
    return (str(node()), str(program)), {**key, **dict.fromkeys(quiet, "1")}


Others = Callable[[Aimock], tuple[tuple[str, ...], dict[str, str]]]
others = pytest.mark.parametrize(("other", "shell"), [(opencode, "bash"), (claude, "Bash")], ids=["opencode", "claude"])
one = pytest.mark.parametrize("square", [pytest.param((PERSONAS[0], "sqlite"), id="sqlite")], indirect=True)


async def started(agent: AcpAgent) -> None:
    """The program runs; skips the test, aloud, where it can't start."""
    try:
        await agent._running()
    except AgentFailed as error:
        await agent.close()
        pytest.skip(f"it can't be started here: {error}")


async def came(server: Aimock, words: str) -> None:
    """A request to the model has come that has some words."""
    async with asyncio.timeout(PATIENCE):
        while not any(words in json.dumps(entry["body"]) for entry in await server.journal()):  # noqa: ASYNC110 -- nothing tells
            await asyncio.sleep(0.1)


async def sent(server: Aimock, words: str) -> str:
    """The newest request to the model that has some words."""
    bodies = [json.dumps(entry["body"]) for entry in await server.journal()]
    return next(body for body in reversed(bodies) if words in body and "title" not in body[:500])


@others
@one
async def test_it_streams_asks_is_stopped_killed_and_taken_back(
    square: Square, tmp_path: Path, other: Others, shell: str
) -> None:
    made = tmp_path / "work" / "made.txt"
    made.parent.mkdir()
    arguments = {"command": "touch made.txt", "description": "Make a file"}
    fixtures: list[dict[str, Any]] = [
        says("Pears it is", "pears"),
        says("Apples it is", "apples"),
        calls(shell, arguments, "make the file"),
        says("The file is there", "make the file"),
        says("never", "take your time", latency=600_000),
        says("Something else"),
    ]
    async with aimock(tmp_path, fixtures) as server:
        command, env = other(server)
        env |= {name: str(tmp_path / "home" / folder) for name, folder in _FOLDERS.items()}
        (tmp_path / "home").mkdir()
        secrets = {name: Secret(value) for name, value in env.items()}
        square.agent = agent = AcpAgent(AcpKeys(command, folder=made.parent, env=secrets, settle=30.0))
        await started(agent)
        try:
            async with square.open(GatewaySettings(attempts=2)):
                assert await square.says("I like apples") == "Apples it is"
                assert "touch made.txt" in await square.says("make the file")
                assert not made.exists()
                assert await square.says("yes", answers=2) == "The file is there"
                assert made.exists()
                square.ann.says("take your time", square.dm)
                await came(server, "take your time")
                assert await square.says("/stop") == "(Stopped.)"
                assert agent.process is not None
                before = agent.process
                os.killpg(before.pid, signal.SIGKILL)
                assert await square.says("I like pears") == "Pears it is"
                assert agent.process is not before
                loaded = await sent(server, "I like pears")
                assert "touch made.txt" in loaded, "its own session was loaded"
                assert "take your time" in loaded, "and what was stopped is in it"
                await square.says("/undo")
                assert await square.says("what about apples?") == "Apples it is"
                told = await sent(server, "what about apples?")
                assert "I like apples" in told
                assert "I like pears" not in told
                assert "Pears it is" not in told
        finally:
            await agent.close()
