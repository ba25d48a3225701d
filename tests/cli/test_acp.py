"""`segue acp` as an editor starts it: a process of its own, beside a `segue serve` that comes and goes."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any, cast

import pytest
from acp import RequestError

from segue.testing.waits import PATIENCE
from tests.editors import Process, editor_of
from tests.served import served
from tests.servers import harnesses, node

MORE = "slowly one more"
SLOW = """
import asyncio

from segue import Work


async def answer(work: Work):
    text = work.asked[-1].text
    if text == "tidy up":
        yield f"You said {await work.ask('Delete all of it?', choices=('yes', 'no'))}."
        return
    print("an agent that prints")
    for word in text.split():
        yield word + " "
        await asyncio.sleep(0.05 if "slowly" in text else 0)
"""


def agent_in(home: Path) -> str:
    (home / "slow.py").write_text(SLOW)
    (home / "segue.toml").write_text("[replica]\nlease = 0.5\n")
    return "slow:answer"


async def test_an_editor_outlives_its_gateway_and_the_prompt_outlives_the_editor(tmp_path: Path) -> None:
    words = " ".join(["slowly", *map(str, range(20))])
    async with served(tmp_path, agent_in(tmp_path)) as gateway, editor_of(tmp_path) as (editor, _):
        session = await editor.new()
        prompting = asyncio.create_task(editor.says(session, words))
        await editor.until(lambda: "5" in str(editor.shows(session)))
        await gateway.end()
        await gateway.start()
        assert await prompting == "end_turn"
        assert editor.shows(session) == [("agent", words)]

        async with editor_of(tmp_path) as (other, process):
            await other.load(session)
            assert other.shows(session) == [("person", words), ("agent", words)]
            dying = asyncio.create_task(other.says(session, MORE))
            await editor.until(lambda: ("person", MORE) in editor.shows(session))
            os.kill(process.process.pid or 0, 9)
            with pytest.raises((ConnectionError, RequestError)):
                await dying
        await editor.until(lambda: editor.shows(session)[-1] == ("agent", MORE))
        assert editor.shows(session) == [("agent", words), ("person", MORE), ("agent", MORE)]


async def test_acpx_lists_resumes_prompts_is_asked_and_cancels(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    client = [str(node()), str(harnesses() / "acpx" / "dist" / "cli.js"), "--ttl", "10"]
    client += ["--agent", f"{sys.executable} -m segue acp", "--approve-all", "--format", "quiet"]
    environ = os.environ | {"HOME": str(tmp_path / "home"), "SEGUE_HOME": str(tmp_path)}

    async def acpx(*arguments: str) -> str:
        done = await asyncio.create_subprocess_exec(
            *client, *arguments, cwd=tmp_path, env=environ, stdout=PIPE, stderr=PIPE
        )
        async with asyncio.timeout(PATIENCE):
            out, err = await done.communicate()
        return (out + err).decode()

    async with served(tmp_path, agent_in(tmp_path)), editor_of(tmp_path) as (editor, _):
        session = await editor.new()
        await editor.says(session, "a good cup of tea")
        assert session in await acpx("sessions", "list")
        assert session in await acpx("sessions", "new", "--resume-session", session)
        assert "You said yes." in await acpx("tidy up")
        await editor.until(lambda: "You said yes." in str(editor.shows(session)))
        assert editor.shows(session)[1:3] == [("person", "tidy up"), ("tool", "Delete all of it?: pending completed")]
        endless = asyncio.create_task(acpx(" ".join(["slowly"] * 2_000)))
        await editor.until(lambda: editor.shows(session)[-1][1].startswith("slowly slowly"))
        await acpx("cancel")
        await endless
        await editor.until(lambda: editor.shows(session)[-1][1].endswith("(Stopped.)"))


async def test_an_editor_that_reads_nothing_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "segue.toml").touch()
    long = "tea" * 100_000
    async with served(tmp_path, agent_in(tmp_path)), editor_of(tmp_path) as (editor, _):
        session = await editor.new()
        await editor.says(session, "tea")
        async with Process(tmp_path).streams() as (reader, writer):
            params = {"sessionId": session, "cwd": "/", "mcpServers": []}
            load = {"jsonrpc": "2.0", "id": 1, "method": "session/load", "params": params}
            writer.write(json.dumps(load).encode() + b"\n")
            async with asyncio.timeout(PATIENCE):
                while b'"id":1' not in await reader.readline():
                    """It is replayed."""
            cast("asyncio.ReadTransport", reader._transport).pause_reading()  # type: ignore[attr-defined]
            for n in range(5):
                assert await editor.says(session, f"{long} {n}") == "end_turn"
            assert editor.shows(session)[-1][1].endswith("4")


async def test_without_a_gateway_one_runs_for_the_editors(tmp_path: Path) -> None:
    (tmp_path / "segue.toml").touch()
    async with editor_of(tmp_path) as (editor, _), editor_of(tmp_path) as (other, _):
        session = await editor.new()
        await editor.says(session, "tea")
        await other.load(session)
        assert ("person", "tea") in other.shows(session)


async def test_whatever_is_no_message_gets_an_error_and_the_next_is_read(tmp_path: Path) -> None:
    (tmp_path / "segue.toml").touch()
    async with Process(tmp_path).streams() as (reader, writer):

        async def sends(line: bytes) -> dict[str, Any]:
            writer.write(line + b"\n")
            async with asyncio.timeout(PATIENCE):
                answer: dict[str, Any] = json.loads(await reader.readline())
            assert answer["jsonrpc"] == "2.0"
            return answer

        def call(method: object, params: object, id: object = 7) -> bytes:
            return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()

        for line, code in (
            (b"{", -32700),
            (b"\xff\xfe", -32700),
            (b"[" * 100_000, -32700),
            (b'"a" * 3', -32700),
            (b"[]", -32600),
            (b"17", -32600),
            (b"{}", -32600),
            (call(["x"], {}), -32600),
            (call("initialize", [1]), -32600),
            (call("initialize", {}, id=[1]), -32600),
            (call("session/new", {"cwd": 5}), -32602),
            (call("session/prompt", {"sessionId": 1, "prompt": "x"}), -32602),
            (call("session/load", {"sessionId": "x\0", "cwd": "/", "mcpServers": []}), -32002),
            (call("session/prompt", {"sessionId": "x", "prompt": [], "_meta": {"self": 1, "session_id": 2}}), -32602),
            (call("nothing", {}), -32601),
            (b"x" * (33 * 1024 * 1024), -32600),
        ):
            answer = await sends(line)
            assert answer["error"]["code"] == code, (line[:100], answer)
        writer.write(json.dumps({"jsonrpc": "2.0", "id": [1], "result": {}}).encode() + b"\n")
        assert (await sends(b"{"))["error"]["code"] == -32600
        assert (await sends(call("initialize", {"protocolVersion": 1})))["error"]["code"] == -32700
        async with asyncio.timeout(PATIENCE):
            assert json.loads(await reader.readline())["result"]["agentInfo"]["name"] == "segue"
