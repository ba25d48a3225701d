"""Sessions of an ACP agent when whole gateways are killed: a lasting child, and two replicas at once."""

import asyncio
import json
import os
import re
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from segue.core.values import SessionId
from segue.store import open_store
from segue.testing.waits import PATIENCE
from tests.agents.acp.keys import program
from tests.drills.gateways import Mind
from tests.editors import Editor, editor_of
from tests.ports import free_port
from tests.served import served
from tests.stories.conftest import Stage


async def until(so: Callable[[], bool]) -> None:
    """Wait for a fact that another process makes."""
    async with asyncio.timeout(PATIENCE):
        while not so():  # noqa: ASYNC110 -- nothing here could set an event
            await asyncio.sleep(0.02)


def log(folder: Path, word: str) -> list[str]:
    """The lines with a first word in the program's own account of what it was asked."""
    return [line for line in (folder / "log").read_text().splitlines() if line.split()[0] == word]


async def test_a_lasting_child_goes_on_after_kills_of_the_gateway(tmp_path: Path) -> None:
    home, work = tmp_path / "segue", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    command = json.dumps(program(work).command)
    table = ["[replica]", "lease = 3.0", "[agent]", 'kind = "acp"', f"command = {command}", f'folder = "{work}"']
    (home / "segue.toml").write_text("\n".join(table))

    async def calls(editor: Editor, session: str, tool: str, **arguments: object) -> str:
        before = len(said(editor, session))
        assert await editor.says(session, f"call {tool} {json.dumps(arguments)}") == "end_turn"
        return said(editor, session)[before:]

    async with served(home) as gateway, editor_of(home) as (editor, _):
        session = await editor.new()
        begun = await calls(editor, session, "sessions_spawn", task="I am plum 0", mode="session", label="fruit")
        await editor.until(lambda: "You said: I am plum 0" in said(editor, session))
        for n in range(1, 10):
            if n in {4, 7}:
                await gateway.end()
                await gateway.start()
            sent = await calls(editor, session, "sessions_send", label="fruit", message=f"I am plum {n}", wait=30)
            result, _ = json.JSONDecoder().raw_decode(sent[sent.index("{") :])
            assert result["reply"] == f"You said: I am plum {n}"
        await calls(editor, session, "sessions_send", label="fruit", message="recall", wait=30)
    seen = (work / "view").read_text()
    assert [seen.count(f"You said: I am plum {n}") for n in range(10)] == [1] * 10
    assert "sessions_send" not in seen, "its context is its own"
    assert len(log(work, "new")) == 2, "its own session went on, and its parent's"
    async with await open_store(home / "segue.db") as store:
        # The child's first words may come in the middle of what its parent says.
        [child] = re.findall(r'"(0[0-9a-z]{25})"', begun)
        assert await store.lanes_of(SessionId(child)) == []


def said(editor: Editor, session: str) -> str:
    """All that the agent has said in a session."""
    return "".join(text for kind, text in editor.shows(session) if kind == "agent")


async def test_a_session_goes_from_replica_to_replica_and_is_taken_over_from_one_that_is_killed(
    stage: Stage, tmp_path: Path
) -> None:
    town = stage.town
    [chat, *_] = town.chats
    ports = [town.port, free_port()]
    async with AsyncExitStack() as stack:
        pids = []
        for town.port in ports:
            running = stage.gateway(mind=Mind.ACP, spy=str(tmp_path), lease=3.0)
            pids.append(await stack.enter_async_context(running))
        for n in range(6):
            town.port = ports[n % 2]
            await town.say(chat, f"m{n}", text=f"I am plum {n}")
            await town.hears(chat, f"You said: I am plum {n}")
        await town.say(chat, "m6", text="hang once")
        await until((tmp_path / "once").exists)
        busy = parent(int((tmp_path / "once").read_text()))
        [left] = [port for pid, port in zip(pids, ports, strict=True) if pid != busy]
        os.kill(busy, signal.SIGKILL)
        town.port = left
        await town.hears(chat, "I hang no more")
        await town.say(chat, "m7", text="recall")
        await town.hears(chat, "I looked")
    assert len(log(tmp_path, "new")) == 1, "the same session of the agent's, wherever it went on"
    assert log(tmp_path, "load")
    seen = (tmp_path / "view").read_text()
    assert [seen.count(f"I said: You said: I am plum {n}") for n in range(6)] == [1] * 6
    assert seen.count("I said: I hang no more") == 1
    assert "An earlier attempt at the following was cut off." in seen
    assert town.texts(chat) == [*(f"You said: I am plum {n}" for n in range(6)), "I hang no more", "I looked"]


def parent(pid: int) -> int:
    """The process that started another."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
