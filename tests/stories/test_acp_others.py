"""ACP agents that others wrote, on a mock of their model's provider: OpenCode and Claude Code."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from acp import text_block

from segue.agents.acp.agent import AcpAgent
from segue.agents.acp.keys import AcpKeys
from segue.changes.sessions import trees
from segue.core.settings import Busy, GatewaySettings
from segue.core.values import Secret
from segue.errors import AgentFailed
from segue.testing import PERSONAS
from segue.testing.waits import PATIENCE
from tests import parts
from tests.editors import Editor, editor_of
from tests.full import full
from tests.served import served
from tests.servers import harnesses, node
from tests.servers import opencode as opencode_program
from tests.servers.aimock import Aimock, Fixture, aimock, calls, says
from tests.stories.square import Square

_FOLDERS = {"HOME": "", "XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config", "XDG_CACHE_HOME": "cache"}
_TEAS = [{"label": "Green", "description": "mild"}, {"label": "Black", "description": "strong"}]
_TEA = {"questions": [{"question": "Which tea?", "header": "Tea", "options": _TEAS, "multiSelect": False}]}
_CAT = {"description": "Find it", "prompt": "find a cat", "subagent_type": "general-purpose"}


def opencode(server: Aimock) -> tuple[tuple[str, ...], dict[str, str]]:
    """The program, and what it has to know of the model."""
    program = opencode_program()
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


async def came(server: Aimock, words: str) -> None:
    """A request to the model has come that has some words."""
    async with asyncio.timeout(PATIENCE):
        while not any(words in json.dumps(entry["body"]) for entry in await server.journal()):  # noqa: ASYNC110 -- nothing tells
            await asyncio.sleep(0.1)


async def sent(server: Aimock, words: str) -> str:
    """The newest request to the model that has some words."""
    bodies = [json.dumps(entry["body"]) for entry in await server.journal()]
    return next(body for body in reversed(bodies) if words in body and "title" not in body[:500])


@asynccontextmanager
async def at_home(folder: Path, fixtures: list[Fixture], other: Others) -> AsyncIterator[tuple[Aimock, AcpKeys]]:
    """A model that answers by fixtures, and the program in an empty home."""
    (folder / "home").mkdir()
    (folder / "work").mkdir()
    async with aimock(folder, fixtures) as server:
        command, env = other(server)
        env |= {name: str(folder / "home" / inside) for name, inside in _FOLDERS.items()}
        secrets = {name: Secret(value) for name, value in env.items()}
        yield server, AcpKeys(command, folder=folder / "work", env=secrets, settle=30.0)


@contextmanager
def skipped() -> Iterator[None]:
    """Skip the test, aloud, where the program can't start."""
    try:
        yield
    except AgentFailed as error:
        if parts.is_wanted(parts.Part.HARNESSES):
            raise
        pytest.skip(f"it can't be started here: {error}")


@others
@one
async def test_it_streams_asks_is_stopped_killed_branched_and_taken_back(
    square: Square, tmp_path: Path, other: Others, shell: str
) -> None:
    made = tmp_path / "work" / "made.txt"
    fixtures = [
        *(says(f"{fruit} it is", fruit.casefold()) for fruit in ("Figs", "Plums", "Pears", "Apples")),
        says("Hurried", "hurry up"),
        says("Twelve", "was cut off"),
        calls(shell, {"command": "touch made.txt", "description": "Make a file"}, "make the file"),
        says("The file is there", "make the file"),
        calls("AskUserQuestion", _TEA, "make tea"),
        says("Tea is there", "make tea"),
        # Claude Code's word of a sub-agent that has ended has many words of its own, such as “send it”.
        calls("Agent", _CAT, "look for a pet"),
        says("It is on its way", "look for a pet"),
        says("It is on its way", "task-notification"),
        says("A cat is here", "find a cat"),
        *(says("never", words, latency=600_000) for words in ("take your time", "count the stars")),
        says("Something else"),
    ]
    async with at_home(tmp_path, fixtures, other) as (server, keys):
        square.agent = agent = AcpAgent(keys)
        with skipped():
            await agent._running()
        try:
            async with square.open(GatewaySettings(attempts=2, busy=Busy.STEER)):
                assert await square.says("I like apples") == "Apples it is"
                assert "touch made.txt" in await square.says("make the file")
                assert not made.exists()
                assert await square.says("yes", answers=2) == "The file is there"
                assert made.exists()
                await stops_and_goes_on(square, server, agent, tmp_path / "home")
                await dies_in_a_turn(square, server, agent)
                await branches(square, server)
                if other is claude:
                    await asks_steers_and_delegates(square, server)
        finally:
            await agent.close()


async def kept(home: Path, words: str) -> None:
    """Wait until the program has written down what it was told."""
    async with asyncio.timeout(PATIENCE):
        while await (await asyncio.create_subprocess_exec("grep", "-rqs", words, home)).wait():  # noqa: ASYNC110 -- nothing tells
            await asyncio.sleep(0.1)


async def stops_and_goes_on(square: Square, server: Aimock, agent: AcpAgent, home: Path) -> None:
    """A turn is stopped, the program is killed after it, and its session is loaded."""
    square.ann.says("take your time", square.dm)
    await came(server, "take your time")
    assert await square.says("/stop") == "(Stopped.)"
    await kept(home, "take your time")
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


async def dies_in_a_turn(square: Square, server: Aimock, agent: AcpAgent) -> None:
    """The program is killed in the middle of a turn, which is answered all the same, once."""
    square.ann.says("count the stars", square.dm)
    await came(server, "count the stars")
    assert agent.process is not None
    before, replies = agent.process, len(square.dm.replies)
    os.killpg(before.pid, signal.SIGKILL)
    assert (await square.hears(square.dm, replies + 1))[replies:] == ["Twelve"]
    assert agent.process is not before


async def branches(square: Square, server: Aimock) -> None:
    """A branch knows what was said before it, and the trunk nothing of the branch."""
    await square.says("/title Fruit")
    await square.says("/branch")
    assert await square.says("I like plums") == "Plums it is"
    told = await sent(server, "I like plums")
    assert "what about apples?" in told
    assert "count the stars" in told
    assert "I like pears" not in told
    await square.says("/resume Fruit #1")
    assert await square.says("I like figs") == "Figs it is"
    told = await sent(server, "I like figs")
    assert "what about apples?" in told
    assert "plums" not in told.casefold()


async def asks_steers_and_delegates(square: Square, server: Aimock) -> None:
    """What it wants to know is a question, what is said meanwhile goes into the turn, sub-agents are child sessions."""
    asked = await square.says("make tea")
    assert "Which tea?" in asked
    assert "strong" in asked
    assert await square.says("Black", answers=2) == "Tea is there"
    assert "Black" in await sent(server, "Which tea?")
    square.ann.says("take your time once more", square.dm)
    await came(server, "once more")
    assert await square.says("hurry up") == "Hurried"
    said = [entry.text for entry in await square.store.path((await square.session()).id)]
    assert said[-3:] == ["take your time once more", "hurry up", "Hurried"]
    # It says more in the same turn, if the sub-agent is done before that ends.
    assert "It is on its way" in await square.says("look for a pet")
    assert "“Find it”" in await square.says("/tree")
    [child] = [
        branch
        for branch in await square.store.driver.read(trees.tree, await square.session())
        if branch.label == "Find it"
    ]
    assert [entry.text for entry in await square.store.path(child.id)] == ["find a cat", "A cat is here"]


async def prompted(editor: Editor, session: str, text: str) -> None:
    """Say something in an editor, though the program that answers takes long to start."""
    async with asyncio.timeout(3 * PATIENCE):
        assert (await editor.agent.prompt(session_id=session, prompt=[text_block(text)])).stop_reason == "end_turn"


@pytest.mark.parametrize(("other", "shell"), [full(opencode, "bash"), (claude, "Bash")], ids=["opencode", "claude"])
async def test_a_turn_in_which_the_gateway_dies_is_answered_by_the_next(
    tmp_path: Path, other: Others, shell: str
) -> None:
    assert shell, "the other story's"
    home = tmp_path / "segue"
    home.mkdir()
    fixtures = [
        says("Twelve", "was cut off"),
        says("Apples it is", "apples"),
        says("never", "count the stars", latency=600_000),
        says("Something else"),
    ]
    async with at_home(tmp_path, fixtures, other) as (server, keys):
        with skipped():
            await keys.tried()
        lines = ["[replica]", "lease = 0.5", "[agent]", 'kind = "acp"', f"command = {json.dumps(keys.command)}"]
        lines += [f"folder = {json.dumps(str(keys.folder))}", "[agent.env]"]
        for name, secret in keys.env.items():
            (home / name).write_text(secret.reveal())
            lines.append(f'{name} = "file:{name}"')
        (home / "segue.toml").write_text("\n".join(lines))
        async with served(home) as gateway, editor_of(home) as (editor, _):
            session = await editor.new()
            await prompted(editor, session, "I like apples")
            prompting = asyncio.create_task(prompted(editor, session, "count the stars"))
            await came(server, "count the stars")
            await gateway.end()
            await gateway.start()
            await prompting
            said = "".join(text for kind, text in editor.shows(session) if kind == "agent")
            assert said == "Apples it isTwelve"
            told = await sent(server, "was cut off")
            assert "I like apples" in told, "its own session went on"
