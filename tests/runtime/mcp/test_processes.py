"""`segue mcp` and `/mcp` as others' programs meet them: real processes, the inspector, and a gateway that is killed."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from segue.core.windows import HOSTS
from segue.store import open_store
from tests.runtime.mcp.test_http import WAIT, Program, given
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


def called(tool: str, **arguments: str) -> list[str]:
    words = ["--method", "tools/call", "--tool-name", tool]
    return words + [word for name, value in arguments.items() for word in ("--tool-arg", f"{name}={value}")]


async def test_the_hosts_programs_go_on_over_a_kill_of_the_gateway_and_nothing_is_done_twice(tmp_path: Path) -> None:
    own = StdioServerParameters(
        command=sys.executable, args=["-m", "segue", "mcp"], env={"SEGUE_HOME": str(tmp_path)}, cwd=tmp_path
    )
    async with served(tmp_path) as gateway, Client(stdio_client(own)) as client:
        host = Program(client)
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        begin = {"key": "one", "task": "good morning", "label": "Morning"}
        begun = await host.does("sessions_spawn", **begin)
        await gateway.end()
        assert (await host.fails("sessions_list")).startswith("No gateway answers there.")
        await gateway.start()
        assert (await host.does("sessions_spawn", **begin))["session"] == begun["session"]
        go_on = {"key": "two", "label": "Morning", "message": "good evening", "wait": WAIT}
        answered = await host.does("sessions_send", **go_on)
        await gateway.end()
        await gateway.start()
        assert await host.does("sessions_send", **go_on) == answered
        history = await host.does("sessions_history", label="Morning")
        said = [entry["text"] for entry in history["entries"] if entry["by"] == "person"]
        assert said == ["good morning", "good evening"]


async def test_the_inspector_lists_and_calls_over_http_and_by_standard_input(tmp_path: Path) -> None:
    async with served(tmp_path) as gateway:
        async with await open_store(tmp_path / "segue.db") as store:
            token = await given(store, (await store.person(HOSTS[0])).id, "mine")
        over_http = [f"{gateway.url}/mcp", "--header", f"Authorization: Bearer {token}"]
        by_input = [sys.executable, "-m", "segue", "mcp", "-e", f"SEGUE_HOME={tmp_path}"]
        for target in (over_http, by_input):
            code, listed = await inspected(*target, "--method", "tools/list", "--strict", folder=tmp_path)
            assert (code, {tool["name"] for tool in listed["tools"]}) == (0, TOOLS)
        begin = called("sessions_spawn", key="one", task="good morning", label="Morning", wait=str(WAIT))
        _, begun = await inspected(*over_http, *begin, folder=tmp_path)
        assert begun.get("structuredContent", begun)["state"] == "answered", begun
        _, again = await inspected(*over_http, *begin, folder=tmp_path)
        assert again["structuredContent"] == begun["structuredContent"]
        _, wrong = await inspected(*by_input, *called("sessions_history", colour="red"), folder=tmp_path)
        assert wrong["isError"]
        assert wrong["content"][0]["text"].startswith("colour: there is no such argument.")
