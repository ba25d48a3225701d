"""`segue mcp` and `/mcp` as others' programs meet them: real processes, the inspector, and a gateway that is killed."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from segue.core.windows import HOSTS
from segue.store import open_store
from tests.runtime.mcp.test_http import WAIT, Program, came, given
from tests.served import PATIENCE, served
from tests.servers import harnesses, node

TOOLS = {
    "ask",
    "handoff",
    "notes_read",
    "notes_write",
    "schedule",
    "schedule_cancel",
    "schedules_list",
    "sessions_close",
    "sessions_history",
    "sessions_list",
    "sessions_search",
    "sessions_send",
    "sessions_spawn",
}
INSPECTOR = Path("@modelcontextprotocol") / "inspector" / "clients" / "cli" / "build" / "index.js"


def by_input(home: Path) -> StdioServerParameters:
    """`segue mcp`, as the host's own programs start it."""
    return StdioServerParameters(
        command=sys.executable, args=["-m", "segue", "mcp"], env={"SEGUE_HOME": str(home)}, cwd=home
    )


async def inspected(*arguments: str, folder: Path) -> tuple[int, Any]:
    """What the MCP inspector's command line prints."""
    program = harnesses() / INSPECTOR
    process = await asyncio.create_subprocess_exec(
        node(),
        program,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "MCP_CATALOG_PATH": str(folder / "catalog.json")},
    )
    async with asyncio.timeout(PATIENCE):
        out, err = await process.communicate()
    assert out, err.decode()
    return process.returncode or 0, json.loads(out)


def called(tool: str, **arguments: object) -> list[str]:
    words = ["--method", "tools/call", "--tool-name", tool]
    return words + [word for name, value in arguments.items() for word in ("--tool-arg", f"{name}={value}")]


async def calls_every(do: Callable[..., Awaitable[Any]], refused: Callable[..., Awaitable[str]]) -> None:
    """Call each tool, in a gateway that no platform is connected to."""
    begun = await do("sessions_spawn", key="begin", task="good morning", label="Morning", wait=WAIT)
    assert begun["state"] == "answered"
    session = begun["session"]
    assert (await do("sessions_send", key="go on", session=session, message="good evening", wait=WAIT))["reply"]
    assert [one["title"] for one in (await do("sessions_list"))["sessions"]] == ["Morning"]
    assert len((await do("sessions_history", label="Morning"))["entries"]) == 4
    assert "found" in await do("sessions_search", words="evening")
    work = await do("schedule", key="later", task="look", when="in 2h", deliver="local")
    assert (await do("schedules_list"))["schedules"] == [work]
    assert (await do("schedule_cancel", id=work["id"]))["state"] == "cancelled"
    note = await do("notes_write", key="note", text="likes cats")
    assert (await do("notes_read"))["notes"] == [note]
    assert "no place where" in await refused("ask", key="ask", question="Which day?")
    assert "isn't connected" in await refused("handoff", key="move", session=session, destination="mars")
    assert (await do("sessions_close", session=session))["state"] == "closed"


async def test_the_hosts_programs_go_on_over_a_kill_of_the_gateway_and_nothing_is_done_twice(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway, Client(stdio_client(by_input(tmp_path))) as client:
        host = Program(client)
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        begin = {"key": "one", "task": "good morning", "label": "Morning"}
        begun = await host.does("sessions_spawn", **begin)
        await gateway.end()
        assert (await host.fails("sessions_list")).startswith("No gateway answers there.")
        await gateway.start()
        assert (await host.does("sessions_spawn", **begin))["session"] == begun["session"]
        go_on = {"key": "two", "label": "Morning", "message": "good evening", "wait": WAIT}
        # What ran when the gateway was killed is held until its lease ends: whoever waits asks again, by the same key.
        answered = await came(lambda: host.does("sessions_send", **go_on), lambda told: told["state"] == "answered")
        await gateway.end()
        await gateway.start()
        assert await host.does("sessions_send", **go_on) == answered
        history = await host.does("sessions_history", label="Morning")
        said = [entry["text"] for entry in history["entries"] if entry["by"] == "person"]
        assert said == ["good morning", "good evening"]


async def test_every_tool_is_called_by_standard_input(tmp_path: Path) -> None:
    async with served(tmp_path), Client(stdio_client(by_input(tmp_path))) as client:
        await calls_every(Program(client).does, Program(client).fails)


async def test_the_inspector_calls_every_tool_over_http_and_lists_them_by_standard_input(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway:
        async with await open_store(tmp_path / "segue.db") as store:
            token = await given(store, (await store.person(HOSTS[0])).id, "mine")
        over_http = [f"{gateway.url}/mcp", "--header", f"Authorization: Bearer {token}"]
        started = [sys.executable, "-m", "segue", "mcp", "-e", f"SEGUE_HOME={tmp_path}"]
        for target in (over_http, started):
            code, listed = await inspected(*target, "--method", "tools/list", "--strict", folder=tmp_path)
            assert (code, {tool["name"] for tool in listed["tools"]}) == (0, TOOLS)

        async def told(tool: str, **arguments: object) -> Any:
            return (await inspected(*over_http, *called(tool, **arguments), folder=tmp_path))[1]

        async def do(tool: str, **arguments: object) -> Any:
            return (await told(tool, **arguments))["structuredContent"]

        async def refused(tool: str, **arguments: object) -> str:
            done = await told(tool, **arguments)
            assert done["isError"]
            return str(done["content"][0]["text"])

        await calls_every(do, refused)
        assert (await refused("sessions_history", colour="red")).startswith("colour: there is no such argument.")
